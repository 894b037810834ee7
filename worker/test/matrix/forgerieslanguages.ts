/** Forgeries in one language, with the machine's own tools in a rootfs sandbox, and the fix beside them. */
import { existsSync } from 'node:fs';
import { describeUnless } from '@swefarm/sandbox/test/subject.ts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Language } from './forgeriescompiled.ts';
import { openForgeryScene, type Scene } from './forgeryscene.ts';

export const languageMatrix = ({ name, program, project, forgeries }: Language): void =>
  describeUnless(existsSync(program) ? null : `there is no ${program}`, name, () => {
    let scene: Scene;
    beforeAll(async () => {
      scene = await openForgeryScene('rootfs', true);
    });
    afterAll(() => scene[Symbol.asyncDispose]());

    test('a fix', async () => {
      const seen = await scene.judged(project, {}, { patch: project.row.patch, auditShare: 1 });
      expect(seen, seen.why).toMatchObject({ resolved: true, level: 'clean', starts: 2 });
    });

    test.each(forgeries)('%s', async (_name, attacked, changes) => {
      const seen = await scene.judged(attacked, changes);
      expect(seen.resolved && seen.level !== 'forged', seen.why).toBe(false);
    });
  });
