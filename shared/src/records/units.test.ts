import { expect, test } from 'vitest';
import { z } from 'zod';
import { RunRecord } from './job.ts';
import { RUN_SETTINGS } from './setting.ts';

/** Units of the numbers whose unit neither their name nor their flag gives. */
const UNITS: Readonly<Record<string, string>> = {
  needs: 'level',
  'agent.card.needs.memory_mib': 'MiB',
  'agent.card.needs.pids': 'processes',
  'agent.cost_limit': 'US dollars',
  'branch_of.turn': 'counted from 1',
  'dataset.instances': 'instances',
  'forecast.rollouts': 'rollouts',
  'forecast.instances': 'instances',
  'forecast.unknown': 'instances',
  'forecast.slots': 'rollouts',
  'forecast.seconds.expected': 'seconds',
  'forecast.seconds.low': 'seconds',
  'forecast.seconds.high': 'seconds',
  'forecast.seconds.ideal': 'seconds',
  'forecast.tokens.prompt': 'tokens',
  'forecast.tokens.completion': 'tokens',
  'forecast.cost': 'US dollars',
  'policy.price.prompt': 'US dollars for a million tokens',
  'policy.price.completion': 'US dollars for a million tokens',
  'policy.sampling.temperature': 'none',
  'policy.sampling.top_p': 'share',
  'policy.sampling.min_p': 'share',
  'policy.sampling.repetition_penalty': 'none',
  'policy.sampling.presence_penalty': 'none',
  'policy.sampling.frequency_penalty': 'none',
  'evaluation.log_limit': 'bytes',
};
const UNIT = /_(seconds|bytes|ms|share)$/;
const VALUE = /<(n|seconds|size|tokens|chars|share|time)>$/;

function inner(schema: z.core.$ZodType): z.core.$ZodType {
  return schema instanceof z.ZodDefault ||
    schema instanceof z.ZodNullable ||
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodExactOptional
    ? inner(schema.unwrap())
    : schema;
}

/** Paths of the numbers whose unit neither their name nor the value of their flag gives. */
function withoutUnit(shape: Readonly<Record<string, z.core.$ZodType>>, above = ''): string[] {
  return Object.entries(shape).flatMap(([key, schema]) => {
    const value = inner(schema);
    if (value instanceof z.ZodObject) return withoutUnit(value.shape, `${above}${key}.`);
    const flag = RUN_SETTINGS.get(schema as z.ZodType)?.flag ?? '';
    return value instanceof z.ZodNumber && !UNIT.test(key) && !VALUE.test(flag) ? [`${above}${key}`] : [];
  });
}

test('each number of the run record has its unit in its name, in its flag, or in this table', () => {
  expect(withoutUnit(RunRecord.shape).toSorted()).toEqual(Object.keys(UNITS).toSorted());
});
