/** Runs every attempt on a runtime: it must fail or be known, and a second sandbox must work afterwards. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Shell } from '../../src/command.ts';
import type { Container } from '../../src/runtime.ts';
import { LIMITS, NEVER, OPTIONS, type Subject, shellOf, start, WHOLE } from '../subject.ts';
import { ATTEMPTS } from './attempts.ts';
import { type Host, MOUNTED_AT, openHost } from './host.ts';
import { KNOWN } from './known.ts';

export function escapeSuite(name: string, makeSubject: () => Promise<Subject>): void {
  describe(`escapes and exhaustion: ${name}`, () => {
    let subject: Subject;
    let host: Host;
    let neighbour: Container;
    let neighbourShell: Shell;
    let neighbourPort: number;
    beforeAll(async () => {
      subject = await makeSubject();
      host = await openHost();
      neighbour = await start(subject);
      neighbourShell = await shellOf(neighbour);
      neighbourPort = (await neighbour.listen((socket) => socket.end('reached'), NEVER)).port;
    });
    afterAll(async () => {
      await neighbourShell[Symbol.asyncDispose]();
      await neighbour[Symbol.asyncDispose]();
      await subject.runtime[Symbol.asyncDispose]();
      await host[Symbol.asyncDispose]();
    });

    for (const attempt of ATTEMPTS.filter(({ slow }) => WHOLE || !slow)) {
      it(attempt.name, async () => {
        const limits = { ...LIMITS, ...attempt.limits };
        const mounts = [{ source: host.mounted, target: MOUNTED_AT }];
        const network = attempt.network ?? 'none';
        await using container = await start(subject, { limits, network, mounts });
        await using shell = await shellOf(container);
        const got = await attempt.run({ container, shell, host, neighbourPort });
        const known = KNOWN[attempt.name]?.[subject.runtime.name];
        if (known === undefined) expect(got).toBeNull();
        else expect(got, `the attempt fails, so remove it from the list: ${known}`).not.toBeNull();
        const alive = await neighbourShell.run('echo alive', { ...OPTIONS, timeoutMs: 30_000 });
        expect(alive).toMatchObject({ exitCode: 0, note: null });
        expect(await neighbour.state()).toBe('running');
        expect(await host.unharmed()).toBe(true);
      });
    }

    it('lists only names of attempts', () => {
      const names = ATTEMPTS.map((attempt) => attempt.name);
      expect(Object.keys(KNOWN).filter((one) => !names.includes(one))).toEqual([]);
    });
  });
}
