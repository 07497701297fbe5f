#!/usr/bin/env bash
# Gradescope runs this once, as root, when it builds the image: installs the grader and what it compiles with.
set -euo pipefail
ROOT="${AUTOGRADER:-/autograder}"
# There is no GPU here, and PyTorch without CUDA is a tenth of the size: its installation page names the index of
# such builds, which may stand here.
TORCH_INDEX="${TORCH_INDEX-}"

export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends g++ make libseccomp2 ca-certificates python3 python3-venv
python=python3
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  apt-get install -y -qq --no-install-recommends python3.11 python3.11-venv
  python=python3.11
fi

"$python" -m venv "$ROOT/grader"
"$ROOT/grader/bin/pip" install --quiet ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} \
  "$(echo "$ROOT"/source/kernel_grader-*.tar.gz)[cuda,sandbox]"

# Students' code must not run as root: root alone writes the results.
id student >/dev/null 2>&1 || useradd --create-home student
"$ROOT/grader/bin/grader" --version
