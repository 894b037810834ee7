/** Reads a recipe, which mixes rollouts of several sources by shares. */
import { readYaml, UsageError } from '@swefarm/shared';
import { z } from 'zod';

const Recipe = z.strictObject({
  parts: z
    .array(
      z.strictObject({
        /** Name of the part in messages. */
        name: z.string().optional(),
        /** Output files, or ids of runs. */
        results: z.array(z.string()).min(1),
        /** Share of the export, relative to the sum of all shares. */
        share: z.number().positive(),
      }),
    )
    .min(1),
});
export type Recipe = z.infer<typeof Recipe>;

/** Reads a recipe. Throws UsageError with the name of the wrong field. */
export function readRecipe(path: string): Recipe {
  const read = Recipe.safeParse(readYaml(path, `${path}: cannot be read`));
  if (read.success) return read.data;
  const [issue] = read.error.issues;
  throw new UsageError(`${path}: ${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'is no recipe'}`);
}

/** `partOf`: index of each source's part. `shares`: share of each part. */
export type Shares = { partOf: readonly number[]; shares: readonly number[] };

/** Returns the largest sizes of the parts that have these shares. `counts` are the numbers of available rollouts in the parts. */
export function partSizes(counts: readonly number[], shares: readonly number[]): number[] {
  const whole = Math.min(...shares.map((share, part) => (counts[part] ?? 0) / share));
  return shares.map((share) => Math.round(whole * share));
}
