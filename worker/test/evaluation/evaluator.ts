/** A real Docker engine that evaluates instances, for tests of the whole path from a container to a report. */
import { planEvaluation } from '@swefarm/grading';
import type { Container, ExecOptions, Runtime } from '@swefarm/sandbox';
import { createRemovals, dockerRuntime } from '@swefarm/sandbox';
import { NEVER, spec } from '@swefarm/sandbox/test/subject.ts';
import type { Instance } from '@swefarm/shared';
import { importTree, minimalImage } from '@swefarm/testkit';
import { evaluate } from '../../src/evaluation/evaluate.ts';
import { EvaluationLock } from '../../src/evaluation/evaluationlock.ts';
import { PROGRAM_LIMITS } from '../../src/evaluation/program.ts';
import { startThreads } from '../../src/threads/pool.ts';

const socketPath = process.env.SWEFARM_TEST_DOCKER_SOCKET ?? '/var/run/docker.sock';

export type Evaluator = Awaited<ReturnType<typeof openEvaluator>>;
type Evaluated = Awaited<ReturnType<typeof evaluate>> & { starts: number };
type Changes = Partial<
  Pick<
    Parameters<typeof evaluate>[1],
    'timeoutSeconds' | 'logLimit' | 'auditShare' | 'goldTimeShare' | 'fromTree'
  >
> & {
  plan?: Partial<Parameters<typeof evaluate>[0]['plan']>;
  /** The first process of a container runs nothing. */
  byExec?: boolean;
};

/** Dispose it after the tests. @param given another runtime than Docker; it is disposed too */
export async function openEvaluator(given?: Runtime) {
  const runtime = given ?? (await dockerRuntime({ socketPath }));
  const threads = startThreads(2);
  return {
    /** Ensures an image with Python; returns its name. */
    async minimal(): Promise<string> {
      const { tree, version } = await minimalImage();
      if (given) return `dir:${tree}`;
      const name = `swefarm-test/minimal:${version}`;
      await importTree(socketPath, tree, name);
      return name;
    },
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
