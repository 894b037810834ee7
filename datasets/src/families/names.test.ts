/** Compares the table of datasets in docs/datasets.md with the readers, by a row in the form of each dataset. */
import { existsSync, readFileSync } from 'node:fs';
import { temporaryFolder } from '@swefarm/testkit/test/temporaryfolder.ts';
import { beforeAll, expect, test } from 'vitest';
import { FAMILY_ROWS, UNGRADABLE_ROWS, writeProFiles } from '../../test/familyrows.ts';
import { row } from '../../test/rows.ts';
import { toInstance } from '../row.ts';

const ROOT = new URL('../../../', import.meta.url);
const PAGE = readFileSync(new URL('docs/datasets.md', ROOT), 'utf8');

type Entry = { name: string; family: string | null; reason: string | null };
const TABLE: Entry[] = [...PAGE.matchAll(/^\| (`[^|\n]+`) \| (?:`([\w-]+)`|–) \| ([^|\n]+) \|$/gm)].flatMap(
  ([, names = '', family, reason = '–']) =>
    names.split(', ').map((name) => ({
      name: name.replaceAll('`', ''),
      family: family ?? null,
      reason: reason === '–' ? null : reason,
    })),
);

const SMITH = row({
  ...{ repo: 'swesmith/mewwts__addict.75284f95', base_commit: undefined, version: undefined },
  instance_id: 'mewwts__addict.75284f95.func_basic__12345678',
  image_name: 'jyangballin/swesmith.x86_64.mewwts_1776_addict.75284f95',
});
/** Artificial row in the form of each dataset, by pattern of the dataset's name. */
const FORMS: readonly [names: RegExp, form: Record<string, unknown> | undefined][] = [
  [/^swe-bench-ext$/, named('swe-bench-ext')],
  [/^deepswe$/, named('deepswe')],
  [/^swerl_gen$/, named('swerl_gen')],
  [/SWE-Pivot/, named('SWE-Pivot')],
  [/SWE-Gym-Raw$/, named('SWE-Gym Raw')],
  [/\/Windows$/, named('Windows')],
  [/^nv-internal-1$/, FAMILY_ROWS['nemotron, nv-internal-1']],
  [/\/SWE-bench_Pro$/, FAMILY_ROWS['swe-bench-pro']],
  [/^PrimeIntellect\/Multi-SWE-RL$/, FAMILY_ROWS['multi-swe, columns of tests']],
  [/Multi-SWE/, FAMILY_ROWS['multi-swe']],
  [/SWE-bench-Live\/SWE-bench-Live$/, FAMILY_ROWS['swe-bench-live, Python']],
  [/\/MultiLang$/, FAMILY_ROWS['swe-bench-live']],
  [/Scale-SWE$/, FAMILY_ROWS['scale-swe']],
  [/SWE-Lego-/, FAMILY_ROWS['swe-lego']],
  [/\/OpenSWE$/, FAMILY_ROWS['open-swe']],
  [/SWE-rebench-V2/, FAMILY_ROWS['swe-rebench-v2']],
  [/SWE-rebench|SWE-bench-extra/, FAMILY_ROWS['swe-rebench']],
  [/^R2E-Gym\/R2E-Gym-/, FAMILY_ROWS['r2e-gym']],
  [
    /^R2E-Gym\/SWE-Bench-/,
    row({ docker_image: 'swebench/sweb.eval.x86_64.pallets_1776_flask-1', expected_output_json: undefined }),
  ],
  [/SWE-smith/, SMITH],
  [/^SWE-Gym\//, row({ repo: 'getmoto/moto', instance_id: 'getmoto__moto-1', version: '5.0' })],
  [/_Multilingual$/, row({ repo: 'redis/redis', instance_id: 'redis__redis-1', version: '9733' })],
  [/_Multimodal$/, row({ repo: 'chartjs/Chart.js', instance_id: 'chartjs__Chart.js-1', version: '4.0' })],
  [/^SWE-bench\/SWE-bench/, row()],
];

function named(start: string): Record<string, unknown> | undefined {
  const [found] = Object.entries(UNGRADABLE_ROWS).filter(([reason]) => reason.startsWith(start));
  return found?.[1];
}

let familyFiles: string;
beforeAll(async () => {
  familyFiles = temporaryFolder('names');
  await writeProFiles(familyFiles);
});

test.each(TABLE)('$name is read as $family, or refused: $reason', ({ name, family, reason }) => {
  const [, form] = FORMS.find(([names]) => names.test(name)) ?? [];
  if (!form) throw new Error(`there is no row in the form of ${name}`);
  const bare = toInstance('line 1', form);
  if (reason !== null)
    expect('problems' in bare && bare.problems.map(({ ungradable }) => ungradable)).toEqual([reason]);
  else expect(bare).toMatchObject({ instance: { family } });
  if (family === null) return;
  expect(toInstance('line 1', form, { familyFiles })).toMatchObject({ instance: { family } });
});

test('the table contains each family and each refused kind of rows', () => {
  expect(TABLE.length).toBeGreaterThan(40);
  expect(new Set(TABLE.map(({ name }) => name)).size).toBe(TABLE.length);
  const families = new Set(TABLE.flatMap(({ family }) => family ?? []));
  for (const form of Object.values(FAMILY_ROWS)) {
    const read = toInstance('line 1', form, { familyFiles });
    expect('instance' in read && families.has(read.instance.family)).toBe(true);
  }
});

test('a swe-bench-ext row with its own script and parser is read by its columns', () => {
  const own = { eval_script: '#!/bin/bash\nnpx jest\n', log_parser: 'jest', image: 'ours/ext:1' };
  for (const given of [
    { ...named('swe-bench-ext'), ...own },
    {
      responses_create_params: {
        metadata: { dataset_name: 'swe-bench-ext', instance_dict: JSON.stringify({ ...row(), ...own }) },
      },
    },
  ])
    expect(toInstance('line 1', given)).toMatchObject({
      instance: { image: 'ours/ext:1', log_parser: 'jest' },
    });
  // No test would pass if a log of jest were read as pytest's.
  for (const missing of [{ log_parser: undefined }, { log_parser: '' }, { eval_script: ' ' }]) {
    expect(toInstance('line 1', { ...named('swe-bench-ext'), ...own, ...missing })).toMatchObject({
      problems: [{ ungradable: 'swe-bench-ext rows are read by parsers that are not established here' }],
    });
  }
});

/** Repositories, images and paths that are written like names of datasets. */
const NO_DATASETS = /^(Unidata|flipt-io|grading|jierun|jyangballin|org|origin|pkg|r2e_tests)\//;
const FACTS = new URL('../shared/FAMILIES.md', ROOT);
test('the table contains every dataset that FAMILIES.md names', ({ skip }) => {
  skip(!existsSync(FACTS), '../shared/FAMILIES.md is not beside the repository');
  const matches = readFileSync(FACTS, 'utf8').matchAll(/`([A-Za-z0-9_-]+\/[A-Za-z0-9_.-]+)`/g);
  const names = [...matches].map(([, name = '']) => name).filter((name) => !NO_DATASETS.test(name));
  expect(names.length).toBeGreaterThan(15);
  expect(names.filter((name) => !TABLE.some((entry) => entry.name === name))).toEqual([]);
});
