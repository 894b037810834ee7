/** Evaluates instances on a real runtime, for tests of the whole path from a container to a report. */
import { join } from 'node:path';
import { planEvaluation } from '@swefarm/grading';
import type { Container, ExecOptions, ReadyImage, Runtime } from '@swefarm/sandbox';
import { createRemovals, dockerRuntime, rootfsRuntime } from '@swefarm/sandbox';
import { NEVER, spec } from '@swefarm/sandbox/test/subject.ts';
import type { Instance } from '@swefarm/shared';
import { bareInstance, importTree, minimalImage, printingScript } from '@swefarm/testkit';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { afterAll, beforeAll } from 'vitest';
import { evaluate } from '../../src/evaluation/evaluate.ts';
import { EvaluationLock } from '../../src/evaluation/evaluationlock.ts';
import { PROGRAM_LIMITS } from '../../src/evaluation/program.ts';
import { startThreads } from '../../src/threads/pool.ts';

export const socketPath = process.env.SWEFARM_TEST_DOCKER_SOCKET ?? '/var/run/docker.sock';

export type Evaluator = Awaited<ReturnType<typeof openEvaluator>>;
type Evaluated = Awaited<ReturnType<typeof evaluate>> & { starts: number };
type Changes = Partial<
  Pick<
    Parameters<typeof evaluate>[1],
    'timeoutSeconds' | 'logLimit' | 'auditShare' | 'goldTimeShare' | 'fromTree'
  >
> & {
  plan?: Partial<Parameters<typeof evaluate>[0]['plan']>;
  /** Whether every command is an exec, so that the first process of the container runs none. */
  byExec?: boolean;
};

/** Dispose it after the tests. @param given another runtime than Docker; it is disposed too */
export async function openEvaluator(given?: Runtime) {
  const runtime = given ?? (await dockerRuntime({ socketPath }));
  const threads = startThreads(2);
  return {
    minimal: () => minimalOn(given === undefined),
    /** Evaluates one patch in containers of `image`; `starts` is the number of containers. */
    async run(row: Instance, patch: string, image = row.image, changes: Changes = {}): Promise<Evaluated> {
      const ready = await runtime.ensureImage(image, NEVER);
      const { plan, byExec = false, ...limits } = changes;
      let starts = 0;
      const work = { instance: row, plan: { ...planEvaluation(row), ...plan }, patch };
      const evaluated = await evaluate(work, {
        container: async () => {
          starts++;
          const container = await runtime.start(spec(ready, { role: 'evaluation' }), NEVER);
          return byExec ? withExecs(container) : container;
        },
        startProgram: () =>
          runtime.start(spec(ready, { role: 'evaluation', limits: PROGRAM_LIMITS, workdir: '/' }), NEVER),
        workContainer: () => runtime.start(spec(ready, { role: 'agent' }), NEVER),
        warn: () => undefined,
        threads,
        evaluationLock: new EvaluationLock(),
        removals: createRemovals(),
        runtime,
        timeoutSeconds: 120,
        logLimit: 1e8,
        evaluateEmpty: true,
        purpose: 'patch',
        count: () => undefined,
        network: 'none',
        goldTimeShare: null,
        auditShare: 0,
        fromTree: false,
        diskBytes: null,
        shortMemory: null,
        imageDigest: ready.digest,
        signal: NEVER,
        ...limits,
      });
      return { ...evaluated, starts };
    },
    async [Symbol.asyncDispose]() {
      await threads[Symbol.asyncDispose]();
      await runtime[Symbol.asyncDispose]();
    },
  };
}

/** An evaluator for all tests of a file or block, and the minimal image on its runtime. */
export function useEvaluator(open: () => Promise<Evaluator> = openEvaluator) {
  const at = {} as { evaluator: Evaluator; image: string };
  beforeAll(async () => {
    at.evaluator = await open();
    at.image = await at.evaluator.minimal();
  });
  afterAll(() => at.evaluator[Symbol.asyncDispose]());
  return at;
}

export const rootfsIn = (folder: string): Promise<Runtime> =>
  rootfsRuntime({ imagesDir: join(folder, 'images'), scratchDir: join(folder, 'scratch') });

/** A runtime for all tests of a block, and the minimal image on it. */
export function useRuntime(name: 'docker' | 'rootfs') {
  const at = {} as { runtime: Runtime; image: ReadyImage };
  beforeAll(async () => {
    const isDocker = name === 'docker';
    at.runtime = isDocker ? await dockerRuntime({ socketPath }) : await rootfsIn(temporaryFolder(name));
    at.image = await at.runtime.ensureImage(await minimalOn(isDocker), NEVER);
  });
  afterAll(() => at.runtime[Symbol.asyncDispose]());
  return at;
}

/** Ensures the minimal image, which has Python, for an engine or for rootfs; returns its name. */
async function minimalOn(isDocker: boolean): Promise<string> {
  const { tree, version } = await minimalImage();
  const tag = `swefarm-test/minimal:${version}`;
  if (isDocker) await importTree(socketPath, tree, tag);
  return isDocker ? tag : `dir:${tree}`;
}

/** An instance whose script runs some lines of bash before its one test passes. */
export function rowOf(lines: readonly string[]): Instance {
  const [head, ...rest] = printingScript("w('.')").split('\n');
  const eval_script = [head, ...lines, ...rest].join('\n');
  return bareInstance({ FAIL_TO_PASS: ['t.py::test_a'], log_parser: 'pytest', eval_script });
}

/** The same container, where every command is an exec of the engine. */
const withExecs = (container: Container): Container =>
  new Proxy(container, {
    get(target, key) {
      if (key === 'exec')
        return (argv: readonly string[], { standing: _none, ...options }: ExecOptions) =>
          target.exec(argv, options);
      const value: unknown = Reflect.get(target, key, target);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
