/** Checks that no pod of the chart has more rights than the values ask for. */
import type { Resource } from './render.ts';

/** Rights that the values of a set ask for. */
export type Allowed = { mode: string; hostPath: boolean; hostNetwork: boolean };

// biome-ignore lint/suspicious/noExplicitAny: whatever Kubernetes has
type Any = any;

const podOf = ({ kind, spec }: Resource): Any => (kind === 'Pod' ? spec : spec?.template?.spec);
const isRootfs = (mode: string): boolean => mode.startsWith('rootfs');

/** Returns a line for each breach of the policy. */
export function breachesOf(resources: readonly Resource[], allowed: Allowed): string[] {
  return resources.flatMap((resource) => {
    const here = `${resource.kind} ${resource.metadata.name}`;
    if (resource.kind === 'ServiceAccount' && resource.automountServiceAccountToken !== false)
      return [`${here}: its token is mounted`];
    if (/^(Cluster)?Role(Binding)?$/.test(resource.kind)) return [`${here}: rights at the API server`];
    const pod = podOf(resource);
    if (!pod) return [];
    return [
      ...podBreaches(pod, allowed),
      ...[...(pod.initContainers ?? []), ...pod.containers].flatMap((one: Any) =>
        containerBreaches(one, pod, allowed).map((breach) => `container ${one.name}: ${breach}`),
      ),
    ].map((breach) => `${here}: ${breach}`);
  });
}

function podBreaches(pod: Any, { mode, hostPath, hostNetwork }: Allowed): string[] {
  const paths = (pod.volumes ?? []).filter((volume: Any) => volume.hostPath);
  return [
    ...(pod.automountServiceAccountToken === false ? [] : ['a token is mounted']),
    ...(pod.hostPID || pod.hostIPC ? ['namespaces of the node'] : []),
    ...(pod.hostNetwork && !hostNetwork ? ['the network of the node'] : []),
    ...paths
      .filter((volume: Any) => !hostPath && !(mode === 'node' && volume.name === 'engine'))
      .map((volume: Any) => `the folder ${volume.hostPath.path} of the node`),
  ];
}

/** Returns whether the container is the init container that makes a folder for the engine's user before the engine starts. */
const isStoreOwner = ({ name, restartPolicy }: Any, mode: string, added: readonly string[]): boolean =>
  mode === 'podman' && name === 'podman-store' && !restartPolicy && `${added}` === 'CHOWN,FOWNER';

function containerBreaches(container: Any, pod: Any, { mode }: Allowed): string[] {
  const security = container.securityContext ?? {};
  const limits = container.resources?.limits ?? {};
  const isEngine = container.name === mode;
  const runsSandboxes = isRootfs(mode) && ['worker', 'pull'].includes(container.name);
  const seccomp = security.seccompProfile?.type ?? pod.securityContext?.seccompProfile?.type;
  const isFree = runsSandboxes || isEngine;
  const added = security.capabilities?.add;
  return [
    ...(['cpu', 'memory'] as const).filter((name) => !limits[name]).map((name) => `no limit of ${name}`),
    ...(security.readOnlyRootFilesystem || (isEngine && mode === 'docker')
      ? []
      : ['its root can be written']),
    ...(seccomp && (seccomp !== 'Unconfined' || isFree) ? [] : [`seccomp ${seccomp}`]),
    ...(security.privileged && !(isEngine && mode === 'docker') ? ['privileged'] : []),
    ...(added && !isFree && !isStoreOwner(container, mode, added) ? [`capabilities ${added}`] : []),
    ...(security.capabilities?.drop?.includes('ALL') || security.privileged
      ? []
      : ['capabilities are not dropped']),
    ...(security.allowPrivilegeEscalation === false || isFree ? [] : ['it may gain privileges']),
  ];
}
