/** Reads the instances of a submitted run: rows of any family, or ids of the dataset of `serve`. */
import { describeProblems, toInstance } from '@swefarm/datasets';
import type { Instance } from '@swefarm/shared';
import type { GatewayDeps } from '../access/deps.ts';
import { Refusal } from '../access/refusal.ts';
import { withHealth } from './callerrun.ts';

type Given = string | Record<string, unknown>;

/** Throws Refusal with the field: 404 for an unknown id, 422 for a bad or repeated row. */
export function readInstances(given: readonly Given[], deps: GatewayDeps): Instance[] {
  const instances = given.map((one, index) => readInstance(`instances.${index}`, one, deps));
  requireDistinct(instances);
  return instances;
}

/** Returns all instances of the dataset of `serve`, from which a run with `until` draws. Throws Refusal 422. */
export function wholeDataset(deps: GatewayDeps, run: Readonly<Record<string, unknown>>): Instance[] {
  const all = deps.instances?.size ? [...deps.instances.values()] : null;
  if (run.until && all) return all.map((one) => withHealth(one, deps));
  const text = all
    ? 'instances: give rows or ids; only a run with until may leave them out'
    : 'instances: give rows; they may be left out only with until, and if serve has --dataset';
  throw new Refusal(422, 'bad_settings', text, { field: 'instances' });
}

/** Reads the instance in `field` of the request. Throws Refusal 404 for an unknown id, 422 for a bad row. */
export function readInstance(field: string, given: Given, deps: GatewayDeps): Instance {
  if (typeof given === 'string') {
    const instance = deps.instances?.get(given);
    if (instance) return withHealth(instance, deps);
    throw new Refusal(404, 'unknown_instance', `${field}: ${given} is not in the dataset of serve`, {
      field,
    });
  }
  const read = toInstance(field, given, deps.rows);
  if ('instance' in read) return withHealth(read.instance, deps);
  const name = read.problems[0]?.field;
  throw new Refusal(422, 'bad_row', describeProblems(field, read.problems, 'nothing was submitted'), {
    field: name ? `${field}.${name}` : field,
  });
}

/** Refuses a repeated instance id, because the rollouts of both rows would have equal ids. */
function requireDistinct(instances: readonly Instance[]): void {
  const seen = new Map<string, number>();
  for (const [index, { instance_id: id }] of instances.entries()) {
    const earlier = seen.get(id);
    if (earlier !== undefined) {
      const text = `instances.${index}: ${id} is instances.${earlier} too; send each once, and set group_size to the number of its rollouts`;
      throw new Refusal(422, 'bad_row', text, { field: `instances.${index}` });
    }
    seen.set(id, index);
  }
}
