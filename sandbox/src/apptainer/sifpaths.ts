/** Possible paths of an instance's .sif file. Sites name files by the instance's id in one of several spellings, or by the image. */

/** `swebench/sweb.eval.x86_64.django_1776_django-11099:latest` → `django__django-11099`; null if the name has another form. */
export function instanceOfImage(image: string): string | null {
  const name = baseOf(image);
  const [, rest] = /^sweb\.eval\.[^.]+\.(.+)$/.exec(name) ?? [];
  return rest?.replace(/_1776_|_s_/, '__') ?? null;
}

const EXPLICIT = /^(?:(?:sif|dir):)?(\/.*)$/;

/** Returns whether an image is named by its path. */
export const isPath = (image: string): boolean => EXPLICIT.test(image);

/**
 * Returns the paths in the order of the search. `{instance_id}` stands for each spelling of the id (unchanged, lower case, `__` as
 * `_s_` or `_1776_`) and for each form of the image's name ({@link imageNames}). `{image}` stands for each form of the image's name; in
 * a template with `{instance_id}`, only for the last part of the name. A path that ends in .sif is also tried without .sif, as an
 * unpacked folder. If the image is an absolute path, the function returns only this path.
 */
export function candidatePaths(
  templates: readonly string[],
  image: string,
  instanceId: string | undefined,
): string[] {
  const [, explicit] = EXPLICIT.exec(image) ?? [];
  if (explicit) return [explicit];
  const ids = [instanceId, instanceOfImage(image)].filter((id) => id !== undefined && id !== null);
  const names = [...new Set([...ids.flatMap(spellings), ...imageNames(image)])];
  const paths = templates.flatMap((template) => {
    const filled = template.includes('{instance_id}')
      ? names.map((name) => template.replaceAll('{instance_id}', name).replaceAll('{image}', baseOf(image)))
      : imageNames(image).map((name) => template.replaceAll('{image}', name));
    return [...filled, ...filled.filter((path) => path.endsWith('.sif')).map((path) => path.slice(0, -4))];
  });
  return [...new Set(paths)];
}

function spellings(id: string): string[] {
  const lower = id.toLowerCase();
  return [
    id,
    lower,
    ...[id, lower].flatMap((one) => [one.replace('__', '_s_'), one.replace('__', '_1776_')]),
  ];
}

function baseOf(image: string): string {
  const last = image.slice(image.lastIndexOf('/') + 1);
  return last.split(/[:@]/, 1)[0] ?? last;
}

/**
 * Returns the last part of the name with the tag (as `apptainer pull` names files), the same without the tag, and the whole name with `_`
 * for `/`. Conversions use the first form, because images of one repository may differ only in the tag.
 */
function imageNames(image: string): string[] {
  const tag = /:([^:/@]+)$/.exec(image)?.[1] ?? 'latest';
  const whole = image.replace(/(:[^:/@]+)?(@.*)?$/, '').replaceAll('/', '_');
  return [`${baseOf(image)}_${tag}`, baseOf(image), whole];
}
