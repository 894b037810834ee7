/** Forgeries in Go, JavaScript and Rust, by the machine's own compilers in a sandbox of rootfs. */
import { existsSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeUnless } from '../sandbox/subject.ts';
import { GO_FORGERIES, HONEST_COMPILED, NODE_FORGERIES, RUST_FORGERIES } from './forgeriescompiled.ts';
import { openForgeryScene, type Scene } from './forgeryscene.ts';

const LANGUAGES = [
  ['Go', '/usr/local/go/bin/go', GO_FORGERIES],
  ['JavaScript', '/usr/bin/node', NODE_FORGERIES],
  ['Rust', '/root/.cargo/bin/cargo', RUST_FORGERIES],
] as const;

let scene: Scene;
beforeAll(async () => {
  scene = await openForgeryScene('rootfs', true);
});
afterAll(() => scene[Symbol.asyncDispose]());

for (const [language, program, forgeries] of LANGUAGES)
  describeUnless(existsSync(program) ? null : `there is no ${program}`, language, () => {
    test.each(HONEST_COMPILED.filter(([name]) => name === language))(
      'a fix in %s',
      async (_name, project) => {
        const seen = await scene.judged(project, {}, { patch: project.row.patch, auditShare: 1 });
        expect(seen, seen.why).toMatchObject({ resolved: true, level: 'clean', starts: 2 });
      },
    );

    test.each(forgeries)('%s', async (name, project, changes) => {
      const seen = await scene.judged(project, changes);
      if (process.env.MATRIX_SEEN) console.log(`${language}: ${name}: ${JSON.stringify(seen)}`);
      expect(seen.resolved && seen.level !== 'forged', seen.why).toBe(false);
    });
  });
