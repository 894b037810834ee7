/** Runs mini-swe-agent from PyPI: its batch command in containers of `docker`, then swebench's evaluation of its predictions. */
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { words, writeLines } from '@swefarm/testkit';
import { ensureHarnesses, ensureVenv, runHarness, runProgram, swebenchArguments } from '../harness.ts';
import { NAMESPACE, type Row, type Scene } from './scene.ts';

const VERSION = '2.4.6';
/** litellm imports mcp without declaring it. */
const INSTALLS = [`mini-swe-agent[full]==${VERSION}`, 'mcp'];

type Batch = { rows: readonly Row[]; parallel: number; at: string };

/** Returns two peers: the batch command without and with the evaluation. Times include the start of each command. */
export async function openMiniSweAgent(scene: Scene) {
  const venv = await ensureVenv(`mini-swe-agent-${VERSION}`, INSTALLS);
  const python = await ensureHarnesses();
  return [false, true].map((graded) => ({
    name: `mini-swe-agent ${VERSION}${graded ? ', swebench 4.1.0' : ''}`,
    graded,
    async run(count: number, parallel: number, round: string): Promise<number> {
      const batch = {
        rows: scene.rows(count),
        parallel,
        at: join(scene.folder, graded ? 'graded' : 'mini', round),
      };
      const from = performance.now();
      const predictions = await predict(scene, venv, batch);
      if (graded) await evaluate(python, batch, predictions, round);
      return (performance.now() - from) / 1000;
    },
  }));
}

/** Returns the file of predictions. @throws Error unless each patch has the fix */
async function predict({ policy }: Scene, venv: string, { rows, parallel, at }: Batch): Promise<string> {
  const data = join(at, 'data');
  await mkdir(data, { recursive: true });
  await writeLines(join(data, 'test.jsonl'), rows);
  const config = join(at, 'endpoint.yaml');
  const model = {
    ...{ model_name: 'hosted_vllm/scripted', cost_tracking: 'ignore_errors' },
    model_kwargs: { api_base: policy.url, api_key: 'none' },
  };
  // JSON is YAML.
  await writeFile(config, JSON.stringify({ agent: { cost_limit: 0 }, model }));
  const output = join(at, 'predicted');
  const args = words`swebench --subset ${data} --split test --slice 0:${rows.length}
    -w ${parallel} -o ${output} -c swebench.yaml -c ${config}`;
  await runProgram(join(venv, 'bin/mini-extra'), args, at, {
    ...{ MSWEA_CONFIGURED: 'true', MSWEA_SILENT_STARTUP: '1', MSWEA_GLOBAL_CONFIG_DIR: join(at, 'own') },
    ...{ LITELLM_LOCAL_MODEL_COST_MAP: 'True', NO_PROXY: '127.0.0.1', no_proxy: '127.0.0.1' },
  });
  const predictions = join(output, 'preds.json');
  const made = JSON.parse(await readFile(predictions, 'utf8')) as Record<string, { model_patch?: string }>;
  const good = Object.values(made).filter(({ model_patch }) => model_patch?.includes('return a + b'));
  if (good.length !== rows.length)
    throw new Error(`mini-swe-agent patched ${good.length} of ${rows.length}: ${JSON.stringify(made)}`);
  return predictions;
}

/** @throws Error unless swebench resolves all rows */
async function evaluate(python: string, { rows, parallel, at }: Batch, predictions: string, round: string) {
  const dataset = await writeLines(join(at, 'rows.jsonl'), rows);
  const main = swebenchArguments({
    dataset,
    predictions,
    workers: parallel,
    run: round,
    namespace: NAMESPACE,
  });
  // swebench's tables have the repository of these rows.
  await runHarness(python, 'swebench', main, '/dev/null', at);
  const summary = (await readdir(at)).find((name) => name.endsWith(`.${round}.json`));
  const text = summary === undefined ? '{}' : await readFile(join(at, summary), 'utf8');
  const { resolved_instances } = JSON.parse(text) as { resolved_instances?: number };
  if (resolved_instances !== rows.length)
    throw new Error(`swebench resolves ${resolved_instances} of ${rows.length}; logs: ${at}`);
}
