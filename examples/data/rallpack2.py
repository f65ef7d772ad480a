"""Makes rallpack2.neuro: the tree of Rallpack 2 (Bhalla, Bilitch and Bower, Trends Neurosci 15:453, 1992).

A trunk of 32 um, 16 um thick, and nine generations of forks. At each fork the diameters of both branches to the power 3/2 add up to that of what
they begin at (Rall 1959), and every section is as long in length constants as the trunk: 0.008.

    python3 examples/data/rallpack2.py > examples/data/rallpack2.neuro
"""

print("""\
//! The tree of Rallpack 2 (Bhalla, Bilitch and Bower, Trends Neurosci 15:453-458, 1992), written by rallpack2.py: a
//! trunk of 32 um, 16 um thick, and nine generations of forks, a compartment each.

use std.channels.hh.{Leak}

cell Tree {""")
for generation in range(10):
    length, diam = 32 * 2 ** (-generation / 3), 16 * 2 ** (-2 * generation / 3)
    for branch in range(2**generation):
        name = f"g{generation}_{branch}" if generation else "g0"
        parent = f"g{generation - 1}_{branch // 2}" if generation > 1 else "g0"
        begin = f"from {parent}(1); " if generation else ""
        print(f"    section {name} {{ {begin}length = {length:.15g} um; diam = {diam:.15g} um; compartments = 1 }}")
print("""\
    region all {
        ra = 100 ohm*cm
        cm = 1 uF/cm2
        v_init = -65 mV
        insert Leak(gbar = 0.025 mS/cm2, erev = -65 mV)
    }
}""")
