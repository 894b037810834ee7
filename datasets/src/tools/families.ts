/**
 * Rows of any family in another family's form, where nothing of the instance is lost. Each row is read again in its new form: a row
 * that then is another instance is refused, whatever the reason.
 */
import { isDeepStrictEqual } from 'node:util';
import { type Instance, UsageError } from '@swefarm/shared';
import { harnessImage, withTag } from '../fields/image.ts';
import { openRow, type RowOptions } from '../row.ts';
import type { VerbatimFile, VerbatimRow } from './rows.ts';
import { readRow } from './variables.ts';

/** `swefarm`: the farm's own record, with environment and plan. `swebench`: the columns of SWE-bench, for its harness. */
export const FAMILY_FORMS = ['swefarm', 'swebench'] as const;
export type FamilyForm = (typeof FAMILY_FORMS)[number];

type Row = Record<string, unknown>;
export type Converted = { value: Row } | { refused: string };

/** A row in another form, or why it has none there. The reason is the same for all such rows, which are counted by it. */
export function inForm(row: VerbatimRow, form: FamilyForm, options: RowOptions = {}): Converted {
  const read = readRow(row, options);
  if ('problem' in read) return { refused: read.problem };
  const { instance } = read;
  const made = form === 'swefarm' ? { value: { ...instance } } : asSwebench(instance);
  if ('refused' in made) return made;
  const again = openRow(row.where, made.value).read();
  if ('problems' in again) {
    const [first] = again.problems;
    return {
      refused: `${instance.family}: its row in that form cannot be read (${first?.field}: ${first?.found})`,
    };
  }
  const lost = differences(instance, again.instance);
  if (lost.length === 0) return made;
  return { refused: `${instance.family}: its row in that form is another instance (${lost.join(', ')})` };
}

/** Fields in which two instances differ. */
function differences(before: Instance, after: Instance): string[] {
  const fields = new Set([...Object.keys(before), ...Object.keys(after)]) as Set<keyof Instance>;
  return [...fields].filter((field) => !isDeepStrictEqual(before[field], after[field])).sort();
}

/**
 * SWE-bench's own columns say nothing of setup, hidden paths, other ways to read outcomes or images of one's own: its harness has a table
 * of commands for its repositories, or, from 5.0, columns for script, parser and image.
 */
function asSwebench(instance: Instance): Converted {
  const { family } = instance;
  if (instance.plan || family === 'swesmith')
    return { refused: `${family}: SWE-bench's columns cannot say how it is set up and graded` };
  if (family === 'swegym')
    return { refused: "swegym: SWE-bench's harness has no commands for its repositories" };
  const { eval_script, log_parser, eval_type, test_cmd, install } = instance;
  const latest = eval_script !== undefined && log_parser !== undefined && eval_type !== undefined;
  if (test_cmd !== undefined || install !== undefined || (eval_script !== undefined && !latest))
    return { refused: "SWE-bench's harness takes no test_cmd, install or eval_script alone of a row" };
  const usual = withTag(harnessImage('swebench', instance.instance_id));
  if (!latest && instance.image !== usual)
    return {
      refused: "SWE-bench's harness takes no image of a row without eval_script, log_parser and eval_type",
    };
  if (instance.needs_egress) return { refused: "SWE-bench's columns cannot ask for a network" };
  const {
    FAIL_TO_PASS,
    PASS_TO_PASS,
    family: _family,
    image,
    needs_egress: _egress,
    health: _health,
    ...rest
  } = instance;
  return {
    value: {
      ...rest,
      FAIL_TO_PASS: JSON.stringify(FAIL_TO_PASS),
      PASS_TO_PASS: JSON.stringify(PASS_TO_PASS),
      ...(latest ? { image } : {}),
    },
  };
}

export type FamilyConversion = {
  /** May be called several times, as a file's own rows. */
  rows: () => AsyncGenerator<VerbatimRow>;
  all: number;
  /** Reason → how many rows, with an example. */
  refused: ReadonlyMap<string, { rows: number; example: string }>;
};

/** Looks at each row once, so that refusals are known before anything is written. */
export async function convertRows(
  file: VerbatimFile,
  form: FamilyForm,
  options: RowOptions,
): Promise<FamilyConversion> {
  const refused = new Map<string, { rows: number; example: string }>();
  let all = 0;
  for await (const row of file.rows()) {
    all += 1;
    const made = inForm(row, form, options);
    if ('value' in made) continue;
    const known = refused.get(made.refused);
    refused.set(made.refused, { rows: (known?.rows ?? 0) + 1, example: known?.example ?? row.where });
  }
  return {
    all,
    refused,
    async *rows() {
      for await (const row of file.rows()) {
        const made = inForm(row, form, options);
        if ('value' in made) {
          const { value } = made;
          yield { where: row.where, value, text: () => JSON.stringify(value) };
        }
      }
    },
  };
}

/** One error for all rows that the form cannot hold, by reason. */
export function unconverted(path: string, form: FamilyForm, { all, refused }: FamilyConversion): UsageError {
  const reasons = [...refused].map(([reason, { rows, example }]) => `  ${rows}: ${reason} (${example})`);
  const total = [...refused.values()].reduce((sum, { rows }) => sum + rows, 0);
  return new UsageError(
    [
      `${path}: ${total} of ${all} rows have no form as ${form}, nothing was written; --skip-ungradable leaves them out`,
      ...reasons,
    ].join('\n'),
    { code: 'dataset_rows' },
  );
}
