#!/usr/bin/env bash
# `npm run ci:kubernetes`: what the chart is tried with beyond the suite of every submission. Builds Helm and Kubernetes where they are not
# there (fifteen minutes of one core, once), renders and checks the chart, builds the images twice and runs them, and installs the chart on
# a real control plane with two nodes, where 64 rollouts run under faults.
# Ends with one line: N passed, N failed. Needs root, Docker, Go and the package registries.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
bash testkit/setup/setup.sh tools docker podman examples || exit 12
packages='busybox-static conntrack containerd containernetworking-plugins etcd-server iproute2 iptables runc'
# shellcheck disable=SC2086 # one argument a word
dpkg -s $packages >/dev/null 2>&1 || {
  apt-get update -q >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $packages >/dev/null
} || exit 12
export PATH="$PWD/node_modules/.bin:$PATH"
. testkit/ci/steps.sh

step 'Helm, kubeconform, the schemas of three versions, Kubernetes' bash testkit/kubernetes/tools.sh helm schemas control
step 'the chart: eight sets of values, three versions, the policy' vitest run --project unit testkit/helm
step 'the images: the same twice, and as the chart runs them' vitest run --project full testkit/test/images.full.test.ts
PATH=$PATH:$(bash testkit/kubernetes/tools.sh --cached helm)
step 'two real nodes: 64 rollouts under faults, probes, leftovers' vitest run --project full testkit/test/kubernetes.full.test.ts

summary
