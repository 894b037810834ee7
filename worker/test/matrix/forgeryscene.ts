/** Patches against small projects on one runtime, in the image of an example: Python, pytest, git and a C compiler. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Container } from '@swefarm/sandbox';
import { NEVER, spec } from '@swefarm/sandbox/test/subject.ts';
import { buildExamples } from '@swefarm/testkit';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { type Evaluator, openEvaluator } from '../evaluation/evaluator.ts';
import { diff, type Project } from './forgeryprojects.ts';
import { openRuntime } from './runtimes.ts';

const EXAMPLE = 'r1chardj0n3s__parse-1.20.2';

export type Seen = { resolved: boolean; level: string; why: string; starts: number };
export type Options = { patch?: string; timeoutSeconds?: number; auditShare?: number };
export type Scene = AsyncDisposable & {
  evaluator: Evaluator;
  image: string;
  start(): Promise<Container>;
  /** Evaluates `options.patch` followed by changes to a project's tree. */
  judged(project: Project, changes: Parameters<typeof diff>[1], options?: Options): Promise<Seen>;
};

/** @param host on rootfs: the machine's own programs in place of the example's image */
export async function openForgeryScene(name: string, host = false): Promise<Scene> {
  const folder = temporaryFolder('matrix');
  await chmod(folder, 0o755);
  if (host) await mkdir(join(folder, 'tree/testbed'), { recursive: true });
  if (host) await warmCompiler(join(folder, 'tree/gocache'));
  const { runtime, imageOf } = await openRuntime(name, folder);
  const image = host ? `host+dir:${folder}/tree` : await exampleImage(name, folder, imageOf);
  const evaluator = await openEvaluator(runtime);
  return {
    evaluator,
    image,
    start: async () => runtime.start(spec(await runtime.ensureImage(image, NEVER)), NEVER),
    async judged({ row, plan, tree }, changes, { patch = '', ...limits } = {}) {
      const { report, starts } = await evaluator.run(row, patch + diff(tree, changes), image, {
        plan,
        ...limits,
      });
      const { level, reasons } = report.trust;
      return { resolved: report.resolved === true, level, why: reasons.join('\n'), starts };
    },
    async [Symbol.asyncDispose]() {
      await evaluator[Symbol.asyncDispose]();
    },
  };
}

/** Go compiles its own library anew without a cache, which takes longer than all tests. */
async function warmCompiler(cache: string): Promise<void> {
  const go = '/usr/local/go/bin/go';
  if (!existsSync(go)) return;
  const env = { ...process.env, GOCACHE: cache, CGO_ENABLED: '0', GOFLAGS: '-mod=mod' };
  await promisify(execFile)(
    go,
    ['build', 'testing', 'testing/internal/testdeps', 'bufio', 'strconv', 'flag', 'runtime/pprof'],
    { env },
  );
}

async function exampleImage(
  name: string,
  out: string,
  imageOf: (tree: string) => Promise<string>,
): Promise<string> {
  const { rows, examples } = await buildExamples({
    ids: [EXAMPLE],
    for: name === 'docker' ? 'docker' : 'rootfs',
    out,
  });
  const { kind, path } = examples[0]?.tree ?? {};
  if (name === 'docker') return rows[0]?.image ?? '';
  return name === 'rootfs' ? `${kind}:${path}` : imageOf(path ?? '');
}
