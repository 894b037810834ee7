/**
 * Converts rows of any family to another format without loss. Each converted row is read again, and refused if the resulting instance
 * differs.
 */
import { isDeepStrictEqual } from 'node:util';
import { type Instance, UsageError } from '@swefarm/shared';
import type { Row } from '../fields/fields.ts';
import { harnessImage, withTag } from '../fields/image.ts';
import { openRow, type RowOptions } from '../row.ts';
import type { VerbatimFile, VerbatimRow } from './rows.ts';
import { readRow } from './variables.ts';

/** Target formats. `swefarm`: the instance record with environment and plan. `swebench`: the columns of SWE-bench, for its harness. */
export const FAMILY_FORMS = ['swefarm', 'swebench'] as const;
export type FamilyForm = (typeof FAMILY_FORMS)[number];

export type Converted = { value: Row } | { refused: string };

/** Returns the row in another format, or the reason why the conversion is impossible. Reports count rows by reason. */
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

function differences(before: Instance, after: Instance): string[] {
  const fields = new Set([...Object.keys(before), ...Object.keys(after)]) as Set<keyof Instance>;
  return [...fields].filter((field) => !isDeepStrictEqual(before[field], after[field])).sort();
}

/**
 * Returns the row with SWE-bench's columns, which cannot express setup steps, hidden paths and other outcome sources. SWE-bench's harness
 * has a table of commands for known repositories; since 5.0 it also reads columns for script, parser and image.
 */
function asSwebench(instance: Instance): Converted {
  const { family } = instance;
  if (instance.plan || family === 'swesmith')
    return { refused: `${family}: SWE-bench's columns cannot describe how it is set up and graded` };
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
    family: _,
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
  /** Yields the converted rows. May be called several times. */
  rows: () => AsyncGenerator<VerbatimRow>;
  all: number;
  /** Number of refused rows by reason, with an example. */
  refused: ReadonlyMap<string, { rows: number; example: string }>;
};

/** Counts the refused rows in a first pass, before a file is written. */
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
        const { value } = inForm(row, form, options) as { value?: Row };
        if (value) yield { where: row.where, value, text: () => JSON.stringify(value) };
      }
    },
  };
}

/** Returns one error for all rows that cannot be converted, by reason. */
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
