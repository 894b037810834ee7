/**
 * Makes a corpus of predictions for instances of four dataset families. The images are layers over one of our examples. Each family gets
 * gold, an empty, an unrelated and a broken patch in turn; only gold resolves.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { buildExamples, makeFamilyInstances, run, smithMirror, writeLines } from '@swefarm/testkit';

const LABEL = 'swefarm.bench=corpus';
/** swebench accepts local images only under the names that it generates. */
export const NAMESPACE = 'swefarm-bench';
/** Examples that need no compiler and no or only a short installation before their tests. */
const EXAMPLES = ['cpburnz__pathspec-0.10.2', 'r1chardj0n3s__parse-1.20.2', 'sdispater__tomlkit-0.11.5'];

type FamilyName = 'swebench' | 'swe-smith' | 'r2e-gym' | 'swe-rebench-v2';
/** Index in KINDS of each family's first prediction. With two predictions, the families with a harness have gold and a broken patch. */
const FIRST_KIND: Readonly<Record<FamilyName, number>> = {
  swebench: 0,
  'swe-smith': 0,
  'r2e-gym': 2,
  'swe-rebench-v2': 3,
};

type Kind = 'gold' | 'nothing' | 'something else' | 'broken';
const KINDS: readonly Kind[] = ['gold', 'broken', 'nothing', 'something else'];

export type Prediction = { instance_id: string; model_name_or_path: string; model_patch: string; kind: Kind };

export type CorpusFamily = {
  name: FamilyName;
  /** The family's harness on PyPI; null: none. */
  harness: 'swebench' | 'swesmith' | null;
  dataset: string;
  predictions: string;
  made: readonly Prediction[];
};

export type Corpus = AsyncDisposable & {
  families: CorpusFamily[];
  /** All rows, and all predictions, in one file. */
  dataset: string;
  predictions: string;
  /** Families that are not measured here, and why. */
  skipped: { what: string; why: string }[];
};

type Row = Record<string, unknown> & { instance_id: string };
type Made = { rows: Row[]; gold: (row: Row) => string; file: string };

const HARNESS: Readonly<Record<FamilyName, CorpusFamily['harness']>> = {
  swebench: 'swebench',
  'swe-smith': 'swesmith',
  'r2e-gym': null,
  'swe-rebench-v2': null,
};

/** Makes a corpus. `each`: number of predictions of each family. Disposal removes its images. */
export async function openCorpus(folder: string, each: number): Promise<Corpus> {
  const images: string[] = [];
  const close = async (): Promise<void> => {
    if (images.length > 0) await run('docker', ['rmi', '-f', ...images]);
  };
  const families: CorpusFamily[] = [];
  const skipped: Corpus['skipped'] = [];
  const all: { rows: Row[]; made: Prediction[] } = { rows: [], made: [] };
  try {
    const examples = await buildExamples({ ids: EXAMPLES, for: 'docker', out: join(folder, 'examples') });
    for (const [name, first] of Object.entries(FIRST_KIND) as [FamilyName, number][]) {
      const made = await MAKERS[name](join(folder, name), each, examples.rows, images);
      if (typeof made === 'string') {
        skipped.push({ what: name, why: made });
        continue;
      }
      const predictions = made.rows.map((row, at) => predict(row, KINDS[(at + first) % KINDS.length], made));
      families.push(await write(folder, name, made.rows, predictions));
      all.rows.push(...made.rows);
      all.made.push(...predictions);
    }
    const { dataset, predictions } = await write(folder, 'all', all.rows, all.made);
    return { families, dataset, predictions, skipped, [Symbol.asyncDispose]: close };
  } catch (error) {
    await close();
    throw error;
  }
}

function predict(row: Row, kind: Kind | undefined, { gold, file }: Made): Prediction {
  const patches: Record<Kind, string> = {
    gold: gold(row),
    nothing: '',
    'something else':
      'diff --git a/NOTES b/NOTES\nnew file mode 100644\n--- /dev/null\n+++ b/NOTES\n@@ -0,0 +1 @@\n+x\n',
    broken: `diff --git a/${file} b/${file}\n--- a/${file}\n+++ b/${file}\n@@ -1 +1 @@\n-nothing like it\n+x\n`,
  };
  const { instance_id } = row;
  const given = kind ?? 'nothing';
  return { instance_id, model_name_or_path: 'bench', model_patch: patches[given], kind: given };
}

async function write(
  folder: string,
  name: string,
  rows: readonly Row[],
  made: readonly Prediction[],
): Promise<CorpusFamily> {
  return {
    name: name as FamilyName,
    harness: HARNESS[name as FamilyName] ?? null,
    dataset: await writeLines(join(folder, `${name}.jsonl`), rows),
    predictions: await writeLines(
      join(folder, `${name}.predictions.jsonl`),
      made.map(({ kind: _, ...prediction }) => prediction),
    ),
    made,
  };
}

type Maker = (folder: string, each: number, base: readonly Row[], images: string[]) => Promise<Made | string>;

/** Makes rows of the same few instances under many ids. Each id has its own image name, as the harness requires. */
const swebench: Maker = async (_folder, each, base, images) => {
  const rows: Row[] = [];
  for (let at = 0; at < each; at++) {
    const row = base[at % base.length] as Row;
    const instance_id = `${row.instance_id.replace(/-[\d.]+$/, '')}-${at + 1}`;
    const image = `${NAMESPACE}/sweb.eval.x86_64.${instance_id.replace('__', '_1776_').toLowerCase()}:latest`;
    await run('docker', ['tag', String(row.image), image]);
    images.push(image);
    rows.push({ ...row, instance_id, image });
  }
  return { rows, gold: (row) => String(row.patch), file: 'README.md' };
};

const SMITH_IMAGE = 'swebench/swesmith.x86_64.r1chardj0n3s_1776_parse.30da9e4f';

const smith: Maker = async (folder, each, _base, images) => {
  if (await isOthers(SMITH_IMAGE)) return `the engine has an image ${SMITH_IMAGE} that is not ours`;
  const { rows, gold } = await smithMirror(folder, each, async (context, base) => {
    await layer(context, ['testbed'], base, SMITH_IMAGE);
    images.push(SMITH_IMAGE);
    return SMITH_IMAGE;
  });
  return { rows, gold: () => gold, file: 'parse.py' };
};

/** Makes rows of one tree under many ids. `root`: folders of the tree that are copied to the image's root; `field`: column of the image. */
const small =
  (family: string, root: readonly string[], field: string): Maker =>
  async (folder, each, base, images) => {
    const image = `localhost/${NAMESPACE}/${family}:latest`;
    const maker = {
      nameOf: () => image,
      make: (_name: string, tree: string) => layer(tree, root, String(base[0]?.image), image),
    };
    const made = (await makeFamilyInstances(folder, maker, [family])).get(family);
    if (!made) throw new Error(`${family}: no instance was made`);
    const { row, gold } = made;
    images.push(image);
    const ids = Array.from({ length: each }, (_, n) => `acme__calc-${family}-${n + 1}`);
    const rows = ids.map((instance_id) => ({ ...row, instance_id, [field]: image }));
    return { rows, gold: () => gold, file: 'calc.py' };
  };

const MAKERS: Readonly<Record<FamilyName, Maker>> = {
  swebench,
  'swe-smith': smith,
  'r2e-gym': small('r2e-gym', ['testbed', 'r2e_tests'], 'docker_image'),
  'swe-rebench-v2': small('swe-rebench-v2', ['calc'], 'image'),
};

/** Builds an image with these folders of the context in its root, in place of the base's /testbed. */
async function layer(
  context: string,
  folders: readonly string[],
  base: string,
  image: string,
): Promise<void> {
  const copies = folders.map((name) => `COPY ${name} /${name}\n`).join('');
  const dockerfile = `FROM ${base}\nRUN rm -rf /testbed\n${copies}LABEL ${LABEL}\nWORKDIR /\n`;
  await writeFile(join(context, 'Dockerfile'), dockerfile);
  await run('docker', ['build', '-q', '--network', 'none', '-t', image, context]);
}

/** Returns whether the engine has an image of this name that no corpus made. */
async function isOthers(image: string): Promise<boolean> {
  try {
    const { stdout } = await run('docker', ['image', 'inspect', '-f', '{{json .Config.Labels}}', image]);
    return (JSON.parse(stdout) as Record<string, string> | null)?.['swefarm.bench'] !== 'corpus';
  } catch (error) {
    if (/no such image/i.test(String((error as { stderr?: string }).stderr))) return false;
    throw error;
  }
}
