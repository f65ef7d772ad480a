# Runs what `neuroc build FILE --emit stablehlo -o DIR` has written, with JAX: python examples/jax_stablehlo.py DIR
import json, pathlib, sys, jax, numpy as np
from jaxlib import xla_client
jax.config.update("jax_enable_x64", True)
here = pathlib.Path(sys.argv[1]); manifest = json.loads((here / "manifest.json").read_text()); inputs = np.load(here / "inputs.npz")
backend, devices = jax.devices()[0].client, xla_client.DeviceList((jax.devices()[0],))
programs = {name: backend.compile_and_load((here / f["text"]).read_text(), devices, xla_client.CompileOptions())
            for name, f in manifest["functions"].items()}
values = {}  # by name: states and cell values, from `init` on
def call(name, number=0):
    def argument(a):
        rows = slice(number * a["shape"][0], (number + 1) * a["shape"][0]) if a["from"] == "rows" else ...
        if a["from"] == "init": return values[a["name"]]
        return jax.device_put(inputs[a["key"]][rows].astype(jax.numpy.dtype(a["dtype"])))  # bfloat16 is kept as float32
    function = manifest["functions"][name]
    results = programs[name].execute_sharded([argument(a) for a in function["arguments"]])
    results = [r[0] for r in results.disassemble_into_single_device_arrays()]
    values.update(zip((r["name"] for r in function["results"]), results))
call("init")
samples = [[] for _ in manifest["stretch"]["records"]]
for number in range(manifest["stretch"]["calls"]):
    call("stretch", number)
    for at, kept in enumerate(samples): kept.append(np.array(values[f"record.{at}"]))
# What is left are steps of the function `step`, which keeps no records.
done = manifest["stretch"]["calls"] * manifest["stretch"]["steps"]
print(f"after {done * manifest['dt_ms']:g} ms; {manifest['stretch']['steps_left']} of {manifest['steps']} steps are left")
for record, kept in zip(manifest["stretch"]["records"], samples):
    print(record["name"], record["unit"], (np.concatenate(kept) / record["scale"])[-1])
