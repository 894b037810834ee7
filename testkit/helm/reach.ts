/** Evaluates NetworkPolicies by the rules of Kubernetes (networking.k8s.io/v1), for tests: no network plugin enforces them here. */
import { BlockList } from 'node:net';
import type { Resource } from './render.ts';

type Labels = Record<string, string>;
/** One end of a connection: a pod of the release's namespace, or an address outside the cluster. */
export type End = { pod: Labels; namespace?: Labels } | { address: string };
type Peer = {
  podSelector?: { matchLabels?: Labels };
  namespaceSelector?: { matchLabels?: Labels };
  ipBlock?: { cidr: string; except?: string[] };
};
type Rule = { from?: Peer[]; to?: Peer[]; ports?: { port: number; protocol?: string }[] };

const fits = (selector: { matchLabels?: Labels } | undefined, labels: Labels): boolean =>
  Object.entries(selector?.matchLabels ?? {}).every(([key, value]) => labels[key] === value);

function contains(cidr: string, address: string): boolean {
  const [net = '', bits] = cidr.split('/');
  const family = (one: string) => (one.includes(':') ? 'ipv6' : 'ipv4');
  if (family(net) !== family(address)) return false;
  const list = new BlockList();
  list.addSubnet(net, Number(bits), family(net));
  return list.check(address, family(address));
}

function isPeer(peer: Peer, end: End): boolean {
  if ('address' in end) {
    const { ipBlock } = peer;
    if (!ipBlock) return false;
    return (
      contains(ipBlock.cidr, end.address) && !ipBlock.except?.some((cidr) => contains(cidr, end.address))
    );
  }
  if (peer.ipBlock) return false;
  // Without a namespace selector, a peer is in the policy's own namespace.
  const isThere = peer.namespaceSelector ? fits(peer.namespaceSelector, end.namespace ?? {}) : !end.namespace;
  return isThere && fits(peer.podSelector, end.pod);
}

const allows = (rule: Rule, peers: Peer[] | undefined, end: End, port: number, protocol: string): boolean =>
  (!peers || peers.some((peer) => isPeer(peer, end))) &&
  (!rule.ports || rule.ports.some((one) => one.port === port && (one.protocol ?? 'TCP') === protocol));

/** Returns whether a connection of `pod` in this direction passes. A pod that no policy selects has no restriction. */
export function passes(
  resources: readonly Resource[],
  direction: 'Ingress' | 'Egress',
  pod: Labels,
  end: End,
  port: number,
  protocol = 'TCP',
): boolean {
  const policies = resources.filter(
    ({ kind, spec }) =>
      kind === 'NetworkPolicy' && spec.policyTypes.includes(direction) && fits(spec.podSelector, pod),
  );
  if (policies.length === 0) return true;
  return policies.some(({ spec }) =>
    ((direction === 'Ingress' ? spec.ingress : spec.egress) as Rule[]).some((rule) =>
      allows(rule, direction === 'Ingress' ? rule.from : rule.to, end, port, protocol),
    ),
  );
}
