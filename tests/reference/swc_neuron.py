"""SWC files as NEURON's reader understands them: length, area and axial resistance of each section, and the rule of d_lambda.

The texts are kept beside the numbers. NEURON reads each with ids that rise and chains in consecutive lines, as its reader needs; what is compared with
it may have the lines in another order and other ids, which mean the same.
"""
import contextlib
import io
import pathlib
import random
import tempfile

from ball_and_stick_neuron import axon, leak, run
from common import store

RA, CM = 150.0, 1.0

SHAPES = {
    "one_point": """\
1 1 3 4 5 8 -1
2 3 3 13 5 1 1
3 3 3 40 5 0.7 2
4 3 20 60 5 0.5 3
5 3 -20 60 9 0.4 3
6 3 -40 90 9 0.2 5
7 4 3 -5 5 2 1
8 4 3 -100 5 1.5 7
""",
    "three_points": """\
1 1 0 0 0 7.5 -1
2 1 0 -7.5 0 7.5 1
3 1 0 7.5 0 7.5 1
4 3 8 0 0 1.2 1
5 3 30 4 1 1 4
6 3 60 9 2 0.6 5
7 2 -8 0 0 0.5 1
8 2 -90 0 0 0.25 7
""",
    "three_points_of_their_own": """\
1 1 0 0 0 6 -1
2 1 0 -9 0 4 1
3 1 0 8 0 3 1
4 3 0 12 0 1 3
5 3 0 50 0 0.5 4
6 3 0 -13 0 1.5 2
7 3 0 -70 0 0.5 6
8 2 5 0 0 0.5 1
9 2 60 0 0 0.4 8
""",
    "two_points": """\
1 1 0 0 0 5 -1
2 1 12 3 0 7 1
3 3 17 3 0 1 2
4 3 90 3 10 0.5 3
5 2 -6 0 0 0.6 1
6 2 -70 5 0 0.3 5
""",
    "a_row_with_a_neurite_between": """\
1 1 0 0 0 3 -1
2 1 5 0 0 6 1
3 1 11 1 0 5 2
4 1 15 1 0 2 3
5 3 18 1 0 1 4
6 3 60 1 0 0.7 5
7 3 11 8 0 0.9 3
8 3 11 60 0 0.5 7
9 2 -4 0 0 0.4 1
10 2 -50 0 0 0.2 9
""",
    "branches_at_the_first_point": """\
1 1 0 0 0 9 -1
2 4 0 9 0 2 1
3 4 0 80 0 1 2
4 3 10 0 0 1.5 1
5 3 30 0 0 1 4
6 3 60 0 0 0.5 5
7 3 25 20 0 0.8 4
8 3 50 40 0 0.3 7
""",
    "neurites_of_one_point": """\
1 1 0 0 0 4 -1
2 3 9 0 0 1 1
3 2 0 -12 0 0.5 1
4 3 0 15 0 1.5 1
5 3 0 30 0 1 4
6 3 4 35 0 0.6 5
7 3 -4 36 0 0.7 5
""",
    "types_change": """\
1 1 0 0 0 8 -1
2 4 0 9 0 2 1
3 4 0 60 0 1.5 2
4 3 0 90 0 1 3
5 3 30 120 0 0.6 4
6 4 -20 150 0 1.2 3
7 4 -20 250 0 0.8 6
8 2 0 -9 0 1 1
9 2 0 -40 0 0.5 8
10 5 10 -60 0 0.4 9
11 5 10 -90 0 0.3 10
12 3 -9 0 0 1 1
13 3 -30 0 0 0.8 12
14 2 -60 0 0 0.4 13
15 2 -90 3 0 0.3 14
""",
    "a_soma_that_branches": """\
1 1 0 0 0 4 -1
2 1 6 0 0 5 1
3 1 12 4 0 3 2
4 1 15 7 0 2 3
5 1 12 -4 0 2 2
6 3 20 10 0 1 4
7 3 60 40 0 0.5 6
8 3 20 -10 0 1 5
9 3 60 -40 0 0.5 8
10 3 6 6 0 1 2
11 3 6 40 0 0.5 10
""",
    "jumps_and_needles": """\
1 1 0 0 0 10 -1
2 3 10 0 0 0.05 1
3 3 11 0 0 3 2
4 3 11.5 0 0 0.1 3
5 3 200 0 0 0.1 4
6 3 200.5 0 0 2 5
7 3 260 0 0 0.5 6
8 3 300 10 0 0.2 7
9 3 300 -10 0 0.3 7
10 3 1300 -10 0 0.05 9
""",
    "a_jump_of_the_diameter": """\
1 1 0 0 0 5 -1
2 3 5 0 0 1 1
3 3 10 0 0 1 2
4 3 10 0 0 3 3
5 3 20 0 0 3 4
6 3 20 0 0 3 5
7 3 30 0 0 1 6
""",
    "a_long_taper": """\
1 1 0 0 0 9 -1
2 4 0 9 0 6 1
3 4 0 300 0 2 2
4 4 0 700 0 0.3 3
5 3 0 -9 0 1 1
6 3 0 -400 50 0.2 5
7 3 100 -900 50 0.1 6
8 3 -100 -800 50 0.4 6
""",
}


def scrambled(text, seed):
    """The same shape with the lines in any order, and ids with gaps in their order of before: what NEURON does not read."""
    rng = random.Random(seed)
    rows = [line.split() for line in text.splitlines()]
    ids, now = {"-1": "-1"}, 40
    for row in rows:
        now += rng.randint(1, 9)
        ids[row[0]] = str(now)
    rows = [[ids[r[0]], *r[1:6], ids[r[6]]] for r in rows]
    rng.shuffle(rows)
    return "# any order\n" + "".join(" ".join(row) + "\n" for row in rows)


def lambda_f(sec, h):
    """NEURON's length constant at 100 Hz (um), over the points of the section."""
    lam = 0.0
    for i in range(1, sec.n3d()):
        lam += (sec.arc3d(i) - sec.arc3d(i - 1)) / (sec.diam3d(i - 1) + sec.diam3d(i)) ** 0.5
    lam *= 2.0 ** 0.5 * 1e-5 * (4.0 * h.PI * 100.0 * sec.Ra * sec.cm) ** 0.5
    return sec.L / lam


def read(text):
    """Sections of a file, in compartments by d_lambda 0.1 at 100 Hz."""
    from neuron import h
    h.load_file("stdlib.hoc")
    h.load_file("import3d.hoc")
    for sec in list(h.allsec()):
        h.delete_section(sec=sec)
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        file = pathlib.Path(folder, "cell.swc")
        file.write_text(text)
        reader = h.Import3d_SWC_read()
        reader.quiet = 1
        reader.input(str(file))
        h.Import3d_GUI(reader, 0).instantiate(None)
    for sec in h.allsec():
        sec.Ra, sec.cm, sec.nseg = RA, CM, 1
        sec.nseg = int((sec.L / (0.1 * lambda_f(sec, h)) + 0.9) / 2) * 2 + 1
    return {sec.name(): sec for sec in h.allsec()}


def understood(text):
    sections = []
    for sec in read(text).values():
        cut, sec.nseg = sec.nseg, 1
        half = sec(0.5).ri(), sec(1).ri()
        section = {"name": sec.name(), "length_um": sec.L, "area_um2": sec(0.5).area(), "half_Mohm": list(half), "cut": cut}
        sec.nseg = cut
        section["areas_um2"] = [seg.area() for seg in sec]
        section["to_parent_Mohm"] = [seg.ri() for seg in sec]
        sections.append(section)
    return sections


def voltages(text):
    """Channels of the squid axon in soma and axon, a leak elsewhere, a current into a dendrite."""
    from neuron import h
    h.load_file("stdrun.hoc")
    sections = read(text)
    for name, sec in sections.items():
        if name.startswith(("soma", "axon")):
            axon(sec)
        else:
            leak(sec, 0.0001, -65.0)
    clamp = h.IClamp(sections["dend[0]"](0.5))
    clamp.delay, clamp.dur, clamp.amp = 1.0, 10.0, 0.5
    places = ["soma[0](0.5)", "axon[1](0.5)", "dend[0](0.5)", "apic[1](0.5)", "dend_5[0](0.5)"]
    segments = [sections[place.split("(")[0]](0.5) for place in places]
    rows, spikes = run(h, segments, 15.0, 4, sections["soma[0]"](0.5))
    return {"places": places, "mV": rows, "spikes_ms": spikes}


def main():
    import neuron
    shapes = {}
    for seed, (name, text) in enumerate(SHAPES.items()):
        shapes[name] = {"swc": text, "scrambled": scrambled(text, seed), "sections": understood(text)}
    store("swc_neuron", {
        "what": "SWC files in NEURON at ra 150 ohm cm, cm 1 uF/cm2: sections of one compartment, and cut into as many as d_lambda 0.1 at 100 Hz gives",
        "neuron_version": neuron.__version__,
        "shapes": shapes,
        "voltages": voltages(SHAPES["types_change"]),
    })


if __name__ == "__main__":
    main()
