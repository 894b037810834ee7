#!/usr/bin/env bash
# Runs the checks that take longer than `npm test`, such as comparisons with the real harness. Prints what it runs and what it
# leaves out, and ends with one line: N passed, N failed. Needs Docker, python3 and a package index.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
bash testkit/setup/setup.sh all || [ $? = 3 ] || exit 1
export PATH="$PWD/node_modules/.bin:$PATH"
venvs=${SWEFARM_FULL_VENVS:-$PWD/.swefarm/cache/venvs}
instances=../shared/instances
. testkit/ci/steps.sh

skip() { printf '\n== %s\nleft out: %s\n' "$1" "$2"; }

images_missing() { # prints the names of instances whose image the engine lacks
  node -e '
    const { readFileSync } = require("node:fs");
    const rows = readFileSync(process.argv[1], "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line));
    for (const row of rows) console.log(row.instance_id, row.image);' "$instances/instances.jsonl" |
    while read -r id image; do docker image inspect "$image" >/dev/null 2>&1 || echo "$id"; done
}

step 'parsers, grading and eval scripts against swebench 4.1.0 and 5.0.2' \
  node grading/test/differential/run.ts --venvs "$venvs"

step 'files that editable installations write' node grading/test/editable/run.ts

step 'verl 0.9.1: tools, agent loop, estimator, a killed trainer' \
  node testkit/clients/verl/run.ts --venv "$venvs/trainers"

trainers() { # No package index has these three, so they are installed from checkouts.
  local name checkouts=()
  for name in THUDM/slime rllm-org/rllm PrimeIntellect-ai/prime-rl; do
    local checkout=.swefarm/cache/${name#*/}
    [ -e "$checkout" ] || git clone -q --depth 1 "https://github.com/$name" "$checkout" || true
    checkouts+=("$PWD/$checkout")
  done
  bash testkit/clients/trainers/run.sh "$venvs/trainers" "${checkouts[@]}"
}
step 'nine trainers take samples under ten faults and from a real farm; their recipes are valid' trainers

learning() { # learning OPTION...: the trainer starts its own farm
  node testkit/clients/train/run.ts --venv "$venvs/trainers" "$@"
}
step 'a model learns on a farm: plain PyTorch, three seeds, random rewards, a wrong token id' learning --seed 0 --seed 1 --seed 2
step "a model learns on a farm: TRL's own trainer, random rewards, a wrong token id" learning --trainer trl/train.py
step 'a model learns on a farm: plain PyTorch with vLLM' learning --only learns --vllm .swefarm/cache/vllm

# Each of these tests has its own control plane.
skip 'the chart on a cluster' 'npm run ci:kubernetes runs it'
step 'long tests of the whole farm' vitest run --project full --exclude 'testkit/test/kubernetes/**'

step 'the control plane of 16 simulated nodes, one of them lost' node bench/main.ts --quick --only scale

step 'a worker killed or delayed after each command of each maintenance duty' \
  env SWEFARM_TEST_EVERY_CUT=1 vitest run --project redis worker/test/maintenance/killed.redis.test.ts

for seed in 11 12 13; do
  step "300 rollouts under faults, seed $seed" bash testkit/chaos/chaos.sh --seed "$seed"
done

step 'fifteen thousand conversations under chat templates of eight families, ours and the real ones, and the real ones of eight more' \
  node policy/test/templates/run.ts --folder .swefarm/cache/templates

step 'the policy client against a real vLLM' \
  node worker/test/agent/vllm/run.ts --folder .swefarm/cache/vllm
step 'agents that come as programs, recorded and simulated, against a real vLLM: their lines by the log of vLLM' \
  node worker/test/agent/vllm/agents.ts --folder .swefarm/cache/vllm

step '10,000 changes of task.toml are read or refused by key' \
  env SWEFARM_TEST_MUTATIONS=10000 vitest run --project unit datasets/src/harbor
step 'the rewards of Harbor tasks beside those of Harbor 0.25.0, on rootfs' node testkit/harbor/compare.ts --runtime rootfs

contract() { # contract NAME [VARIABLE=VALUE...]: tests a runtime's whole contract, and escapes from its sandboxes
  SWEFARM_TEST_WHOLE_CONTRACT=1 env "${@:2}" vitest run --project containers "sandbox/test/$1.containers.test.ts"
}
without_root() { # a separate user, to whose ids podman maps containers
  id swefarm-podman >/dev/null 2>&1 || useradd --create-home swefarm-podman
  contract podman SWEFARM_TEST_PODMAN_USER=swefarm-podman
}
step 'the whole contract on Apptainer, with and without root' contract apptainer
step 'the whole contract on Podman' contract podman
step 'the whole contract on Podman without root' without_root
step 'escapes and exhaustion on every runtime' contract escape/escape

matrix() { # matrix RUNTIME: tests the rewards of forged, void and honest patches and of faults of infrastructure
  env SWEFARM_TEST_MATRIX="$1" \
    vitest run --project containers worker/test/matrix/{voids,faults,forgeries,honest}.containers.test.ts
}
step 'the matrix of verdicts on Podman' matrix podman
step 'the matrix of verdicts on Apptainer' matrix apptainer

spoiled() { # spoiled FILE: compares verdicts and statuses of spoiled patches with the harness
  node worker/test/evaluation/differential/run.ts --python "$venvs/4.1.0/bin/python" --dataset "$1"
}
spoiled_examples() { # one example has an uncommitted edit, one a builder's commit at HEAD
  node testkit/src/examples/build.ts --for docker --out .swefarm/full && spoiled .swefarm/full/instances.docker.jsonl
}
step 'spoiled patches on our examples against swebench 4.1.0' spoiled_examples
if [ ! -e "$instances/instances.jsonl" ]; then
  skip 'spoiled patches on real instances' "no $instances beside the repository"
else
  missing=$(images_missing)
  if [ -n "$missing" ]; then
    rm -rf .swefarm/cache/recipes
    cp -r "$instances" .swefarm/cache/recipes
    # git must not pack in the background while the engine reads the files.
    # shellcheck disable=SC2086 # one argument a word
    GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=gc.auto GIT_CONFIG_VALUE_0=0 SWEB_CACHE=$PWD/.swefarm/cache/instances \
      python3 .swefarm/cache/recipes/make_instances.py image $missing
    rm -rf .swefarm/cache/recipes
  fi
  step 'spoiled patches on real instances against swebench 4.1.0' spoiled "$instances/instances.jsonl"
fi

step 'the Python package: wheel, mypy, pyright, ruff, Python 3.10 to 3.13' bash producer/python/check.sh "$venvs/python-tools"

site() { bash site/site.sh && bash site/site.sh check; }
step 'the documentation site: its links, and its accessibility by Lighthouse' site
step 'a release: published to private registries, installed from them up to the first reward' bash testkit/release/install.sh

gym() { # the released collector of NeMo Gym against `swefarm serve`
  bash testkit/clients/gym/setup.sh "$venvs/gym-0.7.0" && node testkit/clients/gym/run.ts --venv "$venvs/gym-0.7.0" --runtime docker
}
step 'the collector of nemo-gym 0.7.0, 20 rows x 4, killed and resumed' gym
inside() { # the documented entries in the configuration of a Gym with servers of its own
  node testkit/clients/gym/inside.ts --venv "$venvs/gym-0.7.0" --runtime docker
}
step 'nemo-gym 0.7.0 with the farm among its own servers, and its collector' inside
own() { # Gym's own programs read what `swefarm rollout --output-format gym` wrote
  node testkit/clients/gym/own.ts --venv "$venvs/gym-0.7.0" --runtime docker
}
step "nemo-gym 0.7.0 profiles and aggregates our own files" own
sandboxes() { # other projects drive the classes that adapt sessions to them
  bash testkit/clients/sandbox/setup.sh "$venvs" && node testkit/clients/sandbox/run.ts --venvs "$venvs" --runtime docker
}
step 'mini-swe-agent, SWE-ReX, OpenHands SDK and nemo-gym in sandboxes of the farm' sandboxes
harbor() { # tasks and jobs against the released Harbor
  bash testkit/clients/harbor/setup.sh "$venvs/harbor" && node testkit/clients/harbor/run.ts --folder "$venvs/harbor"
}
step 'harbor 0.25.0: oracle, nop, a wrong patch, a regrade and the viewer, on our instances and results' harbor

summary
