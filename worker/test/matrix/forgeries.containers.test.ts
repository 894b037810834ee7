/** Patches that fix nothing and forge: none earns a reward, on each runtime. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Forgery, FRAMEWORK, SPOILERS } from './forgeries.ts';
import { FILES, SCRIPTS } from './forgeriesinfiles.ts';
import { LOOKS, PRINTS } from './forgeriesinwords.ts';
import { openForgeryScene, type Scene } from './forgeryscene.ts';
import { RUNTIMES } from './runtimes.ts';

/** Time limit in seconds of the tests for an attack that hangs, because each of its evaluations takes the whole limit. */
const LIMIT = 8;
const isHanging = (name: string): boolean => /hang/.test(name);

describe.each(RUNTIMES)('on %s', (runtime) => {
  let scene: Scene;
  beforeAll(async () => {
    scene = await openForgeryScene(runtime);
  });
  afterAll(() => scene[Symbol.asyncDispose]());

  const matches = (forgeries: readonly Forgery[]) =>
    test.each(forgeries)('%s', async (name, project, changes) => {
      const seen = await scene.judged(project, changes, isHanging(name) ? { timeoutSeconds: LIMIT } : {});
      if (process.env.MATRIX_SEEN) console.log(`${runtime}: ${name}: ${JSON.stringify(seen)}`);
      expect(seen.resolved && seen.level !== 'forged', seen.why).toBe(false);
    });

  describe('a patch that replaces the framework or the runner', () => matches(FRAMEWORK));
  describe('a patch that breaks its second evaluation', () => matches(SPOILERS));
  describe('a patch that prints results', () => matches(PRINTS));
  describe('a patch that reads its tests', () => matches(LOOKS));
  describe('a patch with files that tests load', () => matches(FILES));
  describe('a patch to scripts that start tests', () => matches(SCRIPTS));
});
