/** Splits the setting of prompt sets or toolsets: names or files with weights (`edit=0.5,own.yaml=0.5`), a set, or a list of them. */

/** Matches the name of a file with a set. */
export const SET_FILE = /\.(ya?ml|json)$/;

type Listed = { name: string; weight: string | undefined } | { set: unknown };

/** Returns the names of the setting with their weights, and sets unchanged, in order. */
export function listedSets(given: unknown): Listed[] {
  const list = [given].flat().flatMap((one: unknown) => (typeof one === 'string' ? one.split(',') : [one]));
  return list.map((one: unknown) => {
    if (typeof one !== 'string') return { set: one };
    const { name = '', weight } = /^(?<name>.+?)(?:=(?<weight>[\d.]+))?$/s.exec(one.trim())?.groups ?? {};
    return { name, weight };
  });
}
