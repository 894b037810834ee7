/** Uses the container engine without the farm: the floors are measured with dockerode alone. */
import { PassThrough, type Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { loadConfig } from '@swefarm/shared';
import Docker from 'dockerode';

/** The engine that a worker without flags would use. */
export const SOCKET = (loadConfig('worker').docker_socket ?? '/var/run/docker.sock').replace(
  /^unix:\/\//,
  '',
);

/** The label of every container that the benchmark itself starts. */
const LABEL = 'swefarm-bench';

let client: Docker | null = null;

export function engine(): Docker {
  client ??= new Docker({ socketPath: SOCKET });
  return client;
}

/** Creates and starts an idle container without limits and network, at the least cost for the engine. */
export async function startBare(image: string): Promise<Docker.Container> {
  const container = await engine().createContainer({
    Image: image,
    Entrypoint: ['sleep', '86400'],
    Cmd: [],
    Labels: { [LABEL]: String(process.pid) },
    WorkingDir: '/testbed',
    HostConfig: { NetworkMode: 'none', LogConfig: { Type: 'none', Config: {} } },
  });
  await container.start();
  return container;
}

export async function removeBare(container: Docker.Container): Promise<void> {
  await container.remove({ force: true, v: true });
}

export type Executed = { exitCode: number | null; output: string };

/** Runs a command by one exec, as a harness without a persistent shell does: create, start, read, and query the exit code. */
export async function execOnce(container: Docker.Container, argv: readonly string[]): Promise<Executed> {
  const exec = await container.exec({
    Cmd: [...argv],
    AttachStdout: true,
    AttachStderr: true,
    WorkingDir: '/testbed',
  });
  const stream = await exec.start({ hijack: true, stdin: false });
  const output = await text(demuxed(stream));
  return { exitCode: (await exec.inspect()).ExitCode, output };
}

/** Opens one bash by an exec. Writes go to its stdin. */
export async function openBash(
  container: Docker.Container,
): Promise<{ stdin: NodeJS.WritableStream; output: Readable }> {
  const exec = await container.exec({
    Cmd: ['bash', '--noprofile', '--norc'],
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
    WorkingDir: '/testbed',
  });
  const stream = await exec.start({ hijack: true, stdin: true });
  return { stdin: stream, output: demuxed(stream) };
}

/** Merges stdout and stderr of an exec's framed stream. */
function demuxed(stream: NodeJS.ReadableStream): Readable {
  const merged = new PassThrough();
  engine().modem.demuxStream(stream, merged, merged);
  const end = (): void => void merged.end();
  stream.once('end', end);
  stream.once('close', end);
  return merged;
}
