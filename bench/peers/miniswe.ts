/** mini-swe-agent from PyPI: its own batch command over rows of SWE-bench's form, in containers of the `docker` program. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runProgram } from '../harness.ts';
import { ensureVenv } from '../venv.ts';
import { type Peer, secondsSince } from './peer.ts';
import { type Row, type Scene, writeLines } from './scene.ts';
import { openEvaluation } from './swebench.ts';

const VERSION = '2.4.6';
/** litellm imports mcp and does not say so. */
const INSTALLS = [[`mini-swe-agent[full]==${VERSION}`, 'mcp']];

/** The batch alone, and the batch with swebench's evaluation of what it predicted. */
export async function miniSweAgent(scene: Scene): Promise<Peer[]> {
  const venv = await ensureVenv({ name: `mini-swe-agent-${VERSION}`, installs: INSTALLS });
  const evaluate = await openEvaluation();
  const { folder, rows } = scene;
  const name = `mini-swe-agent ${VERSION}`;
  return [
    {
      ...{ name, work: 'rollouts', counts: 'the whole command' },
      run: async (count, parallel, round) =>
        (await predict(scene, venv, { rows: rows(count), parallel, at: join(folder, 'mini', round) }))
          .seconds,
    },
    {
      ...{ name: `${name}, swebench 4.1.0`, work: 'graded', counts: 'both whole commands' },
      async run(count, parallel, round) {
        const at = join(folder, 'minigraded', round);
        const asked = rows(count);
        const { seconds, predictions } = await predict(scene, venv, { rows: asked, parallel, at });
        return seconds + (await evaluate({ at, rows: asked, predictions, parallel, round }));
      },
    },
  ];
}

type Batch = { rows: readonly Row[]; parallel: number; at: string };

async function predict(
  { policy }: Scene,
  venv: string,
  { rows, parallel, at }: Batch,
): Promise<{ seconds: number; predictions: string }> {
  await writeLines(join(at, 'data/test.jsonl'), rows);
  const config = join(at, 'endpoint.yaml');
  const model = {
    ...{ model_name: 'hosted_vllm/scripted', cost_tracking: 'ignore_errors' },
    model_kwargs: { api_base: policy.url, api_key: 'none' },
  };
  // JSON is YAML.
  await writeFile(config, JSON.stringify({ agent: { cost_limit: 0 }, model }));
  const output = join(at, 'predicted');
  const args = [
    ...['swebench', '--subset', join(at, 'data'), '--split', 'test', '--slice', `0:${rows.length}`],
    ...['-w', String(parallel), '-o', output, '-c', 'swebench.yaml', '-c', config],
  ];
  const from = performance.now();
  await runProgram(join(venv, 'bin/mini-extra'), args, at, {
    ...{ MSWEA_CONFIGURED: 'true', MSWEA_SILENT_STARTUP: '1', MSWEA_GLOBAL_CONFIG_DIR: join(at, 'own') },
    ...{ LITELLM_LOCAL_MODEL_COST_MAP: 'True', NO_PROXY: '127.0.0.1', no_proxy: '127.0.0.1' },
  });
  const seconds = secondsSince(from);
  const predictions = join(output, 'preds.json');
  const made = JSON.parse(await readFile(predictions, 'utf8')) as Record<string, { model_patch?: string }>;
  const good = Object.values(made).filter(({ model_patch }) => model_patch?.includes('return a + b'));
  if (good.length !== rows.length)
    throw new Error(
      `mini-swe-agent patched ${good.length} of ${rows.length}: ${JSON.stringify(made).slice(0, 500)}`,
    );
  return { seconds, predictions };
}
