/** An engine that does not answer for a while, as on a loaded disk, or because of a file in a container. */
import { join } from 'node:path';
import { listening } from '@swefarm/testkit/test/listening.ts';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import Docker from 'dockerode';
import { expect, test } from 'vitest';
import { startExec } from '../src/docker/exec.ts';

const FILE = 0o644;
/** Go's mode of a named pipe. */
const PIPE = 0x02000000 + 0o644;
const ID = 'c'.repeat(64);

type Stage = 'stat' | 'create' | 'start';

/** Starts an engine that does not answer requests of the stages `stalled`. `modeOf` returns the file mode at each check of a path. */
async function engine(stalled: readonly Stage[], modeOf: (path: string) => number) {
  const folder = temporaryFolder('stall');
  const socketPath = await listening(
    (request, answer) => {
      const url = new URL(request.url ?? '', 'http://engine');
      const stage: Stage =
        request.method === 'HEAD' ? 'stat' : url.pathname.endsWith('/start') ? 'start' : 'create';
      if (stalled.includes(stage)) return;
      if (stage === 'create') return void answer.writeHead(201).end('{"Id":"e"}');
      const stat = { mode: modeOf(url.searchParams.get('path') ?? ''), size: 1, linkTarget: '' };
      const header = Buffer.from(JSON.stringify(stat)).toString('base64');
      answer.writeHead(200, { 'x-docker-container-path-stat': header }).end();
    },
    join(folder, 'engine.sock'),
  );
  return new Docker({ socketPath });
}

const startOf = async (docker: Docker): Promise<unknown> =>
  startExec(docker.getContainer(ID), ['true'], { stdin: false, answerMs: 2_000 }).catch(
    (error: unknown) => error,
  );

test.each<Stage>(['stat', 'create', 'start'])(
  'an engine that is late with the %s of a command is what failed, not the container',
  async (stage) => {
    const docker = await engine([stage], () => FILE);
    expect(await startOf(docker)).toMatchObject({
      failureClass: 'engine_unreachable',
      message: expect.stringContaining('did not answer in 2 s'),
    });
  },
);

test('a late engine is attributed to the container when a special file blocks its reads', async () => {
  let looks = 0;
  // The pipe is absent at the first two checks, then present at every second one.
  const docker = await engine(['start'], (path) =>
    path === '/etc/passwd' && ++looks > 1 && looks % 2 === 1 ? PIPE : FILE,
  );
  expect(await startOf(docker)).toMatchObject({
    failureClass: 'sandbox_lost',
    message: expect.stringContaining('/etc/passwd'),
  });
});
