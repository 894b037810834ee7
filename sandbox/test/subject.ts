/** The subject of the contract suites, and helpers of their cases. */
import { spawnSync } from 'node:child_process';
import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import { importTree, minimalImage } from '@swefarm/testkit';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { describe, it } from 'vitest';
import type { Shell } from '../src/command.ts';
import { type DockerRuntimeOptions, dockerRuntime } from '../src/docker/runtime.ts';
import { allPids, readProcessFile } from '../src/namespaces/processes.ts';
import type {
  Container,
  ContainerSpec,
  ExecOptions,
  ExecResult,
  Limits,
  ReadyImage,
  Runtime,
} from '../src/runtime.ts';
import { openPreparedShell, openShell } from '../src/shell.ts';
import { type Concealment, prepareTree, type Snapshot } from '../src/snapshot.ts';

export type Subject = {
  runtime: Runtime;
  /** An image with bash, coreutils, git and python3, and an empty /testbed. */
  image: string;
  /** An image without bash; null where the runtime has no images. */
  imageWithoutBash: string | null;
};

export type ContractOptions = {
  /** The runtime isolates processes, network and files. */
  isolated: boolean;
  /** The sandboxes are children of the worker, so that a signal to the job reaches them. */
  children?: boolean;
  /** The enforced limits, by the kernel or the watchdog. */
  limits: Partial<Record<'memory' | 'pids', 'enforced' | 'watched'>>;
  /** False: only the core of the suite, for runtimes that share their code with a fully tested one. Default true. */
  whole?: boolean;
};

/** Whether long contracts run completely; `npm run ci:full` sets the variable. */
export const WHOLE = process.env.SWEFARM_TEST_WHOLE_CONTRACT === '1';

/** A marker of the test image. Cases that would harm a real machine require it. */
export const TEST_IMAGE_MARKER = '/swefarm-test-image';
export const NEVER = new AbortController().signal;
export const OPTIONS: ExecOptions = { timeoutMs: 120_000, maxOutputBytes: 4_000, signal: NEVER };
export const PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
export const LIMITS: Limits = { cpus: 2, memoryBytes: 512 * 1024 * 1024, pids: 256, diskBytes: null };

/** Identifies this test process's containers. */
export const FARM = `contract-${process.pid}`;

export function spec(image: ReadyImage, changes: Partial<ContainerSpec> = {}): ContainerSpec {
  return {
    image,
    role: 'agent',
    owner: { farm: FARM, worker: 'w1', pid: process.pid, pid_started: '1', rollout_id: 'r.i.0', attempt: 1 },
    network: 'none',
    limits: LIMITS,
    workdir: '/testbed',
    env: {},
    ...changes,
  };
}

export async function start(subject: Subject, changes: Partial<ContainerSpec> = {}): Promise<Container> {
  return subject.runtime.start(spec(await subject.runtime.ensureImage(subject.image, NEVER), changes), NEVER);
}

/** Folders of a runtime, which other users can enter. */
export async function runtimeFolders(name: string) {
  const folder = temporaryFolder(name);
  await chmod(folder, 0o755);
  return { folder, imagesDir: join(folder, 'images'), scratchDir: join(folder, 'scratch') };
}

/** Imports the test image into an engine; returns its name. */
export async function importImage(socketPath: string, bash = true): Promise<string> {
  const { tree, version } = await minimalImage({ bash });
  const image = `swefarm-test/${bash ? 'minimal' : 'nobash'}:${version}`;
  await importTree(socketPath, tree, image);
  return image;
}

export async function engineSubject(options: DockerRuntimeOptions): Promise<Subject> {
  const image = await importImage(options.socketPath);
  const imageWithoutBash = await importImage(options.socketPath, false);
  return { runtime: await dockerRuntime(options), image, imageWithoutBash };
}

/** Registers cases only if `condition` holds: cases outside of a runtime's claims do not appear as skipped. */
export function describeIf(condition: boolean, name: string, cases: () => void): void {
  if (condition) describe(name, cases);
}

/** Registers cases that a machine may be unable to run, or skips them with the reason `why`, which `npm test` prints. */
export function describeUnless(why: string | null, name: string, cases: () => void): void {
  if (why === null) describe(name, cases);
  else it(name, ({ skip }) => skip(why));
}

/** Returns why Apptainer cannot run here; null when it can. */
export const noApptainer = (): string | null =>
  spawnSync('apptainer', ['--version']).status === 0
    ? null
    : 'there is no Apptainer: bash testkit/setup/setup.sh apptainer';

export const shellOf = (container: Container): Promise<Shell> => openShell(container, { activate: '' });

export const errorOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => null,
    (error: unknown) => error,
  );

/** Counts the processes of this machine whose command line begins like this. */
export async function countProcesses(commandLine: string): Promise<number> {
  const lines = await Promise.all((await allPids()).map((pid) => readProcessFile(pid, 'cmdline')));
  return lines.filter((line) => line.startsWith(commandLine)).length;
}

/** Prepares the tree of a container as a rollout does. */
export async function snapshotOf(container: Container, concealment?: Concealment): Promise<Snapshot> {
  const tree = prepareTree(container.workdir, concealment);
  const { shell, prepared } = await openPreparedShell(container, { activate: '' }, tree);
  await shell[Symbol.asyncDispose]();
  return tree.snapshot(prepared);
}

/** Runs a shell script by plain exec in the work tree; throws when it fails. */
export async function sh(container: Container, script: string): Promise<ExecResult> {
  const result = await container.exec(['/bin/sh', '-ec', script], {
    env: { PATH, HOME: '/tmp' },
    cwd: container.workdir,
    timeoutMs: 120_000,
    maxOutputBytes: 65_536,
    signal: NEVER,
  });
  if (result.exitCode !== 0) throw new Error(`exit ${result.exitCode}: ${result.output}`);
  return result;
}

/** Returns the output of {@link sh}. */
export const printed = async (container: Container, script: string): Promise<string> =>
  (await sh(container, script)).output.toString();
