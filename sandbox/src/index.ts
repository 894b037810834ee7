export { type CleanPlans, type PreparedSandbox, prepareSandbox } from './agentsandbox.ts';
export { openConverter, sourceInEngine } from './apptainer/convert.ts';
export { apptainer } from './apptainer/entry.ts';
export { openRegistryConversion } from './apptainer/fromregistry.ts';
export { apptainerRuntime } from './apptainer/runtime.ts';
export { hasFilledDisk, isCausedByCode, lossOr, occupiesDisk, type Suspect } from './attribution.ts';
export { type CommandResult, type RunOptions, SandboxKilledError, type Shell } from './command.ts';
export { type DiskWatch, diskFree, diskIsFull, freeFiles, watchDisk } from './disk.ts';
export { docker, podman } from './docker/entry.ts';
export { dockerRuntime } from './docker/runtime.ts';
export type { RuntimeEntry } from './entry.ts';
export type { FileChanges } from './filechanges.ts';
export { type FolderFiles, readFolder } from './folder.ts';
export { host } from './host/entry.ts';
export { hostRuntime } from './host/runtime.ts';
export { INTERNAL_SPEC } from './internal.ts';
export { requirePossible } from './limits.ts';
export { requireOwnKills } from './memorygroup.ts';
export { findInit } from './namespaces/processes.ts';
export { PreparedContainer } from './prepared.ts';
export { createRemovals, type Removals } from './removals.ts';
export { rootfs } from './rootfs/entry.ts';
export { rootfsRuntime } from './rootfs/runtime.ts';
export type {
  Container,
  ContainerSpec,
  ContainerState,
  ExecOptions,
  ExecResult,
  ImageBuild,
  ImageInspection,
  ImageLine,
  Limits,
  Listener,
  Mount,
  OwnedContainer,
  Owner,
  ReadyImage,
  Runtime,
  RuntimeCheck,
} from './runtime.ts';
export { SCRATCH } from './scratch.ts';
export { describeStep, requireSteps, runSteps, setUp } from './setup.ts';
export { openPreparedShell, openShell } from './shell.ts';
export { prepareTree, takePatch } from './snapshot.ts';
export { copyIn, copyOut } from './trees/copy.ts';
export type { TreeEntry } from './trees/tree.ts';
