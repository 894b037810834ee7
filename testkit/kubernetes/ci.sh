#!/usr/bin/env bash
# `npm run ci:kubernetes`: the checks of the chart that `npm test` does not include. Builds Helm and Kubernetes if they are missing (once,
# half an hour of one core), renders and checks the chart, builds the images twice and runs them, and installs the chart on a real control
# plane, a new one for each test file of testkit/test/kubernetes/. SWEFARM_TEST_CHAOS_MINUTES=60 runs two releases on one node for
# an hour. Ends with one line: N passed, N failed. Needs root, Docker, Go and the package registries.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
bash testkit/setup/setup.sh tools docker podman examples prometheus || exit 12
packages='busybox-static conntrack containerd containernetworking-plugins etcd-server gcc iproute2 iptables libc6-dev libseccomp-dev runc'
# shellcheck disable=SC2086 # one argument a word
dpkg -s $packages >/dev/null 2>&1 || {
  apt-get update -q >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $packages >/dev/null
} || exit 12
export PATH="$PWD/node_modules/.bin:$PATH"
. testkit/ci/steps.sh

step 'Helm, kubeconform, the schemas of three versions, Kubernetes, containerd' bash testkit/kubernetes/tools.sh helm schemas control kwok containerd
step 'the chart: eight sets of values, three versions, the policy' vitest run --project unit testkit/helm
step 'the images: the same twice, and as the chart runs them' vitest run --project full testkit/test/images.full.test.ts
PATH=$PATH:$(bash testkit/kubernetes/tools.sh --cached helm)
SWEFARM_TEST_KUBERNETES_IMAGES=$(mktemp -d /var/tmp/swefarm-images-XXXXXX)
export SWEFARM_TEST_KUBERNETES_IMAGES
trap 'rm -rf "$SWEFARM_TEST_KUBERNETES_IMAGES"' EXIT
step 'the images, as archives for the nodes' node testkit/kubernetes/images.ts "$SWEFARM_TEST_KUBERNETES_IMAGES"
cluster() { step "$1" vitest run --project full "testkit/test/kubernetes/$2.full.test.ts"; }
cluster 'two real nodes: 64 rollouts under faults, probes, leftovers' faults
cluster 'the same faults on the engine of the nodes' enginefaults
cluster 'from 0 workers and back, by the queries of the chart' scaling
cluster '400 workers on fake nodes; what the API server is asked' size
cluster 'two releases on one node, one of which suffers' neighbours
cluster 'the engine of the node, one beside the worker, stores filled before, jobs of trainers' engines
cluster 'pods with users of their own, on containerd 2: rootfs and Podman in them' usernamespaces

summary
