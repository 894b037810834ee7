/** Detects the dataset family of a row, and names that family's images. */
import type { DatasetFamily } from '@swefarm/shared';

/** The 12 repositories of SWE-bench, Verified and Lite, and the 6 of their development split. */
const SWEBENCH_REPOS = new Set([
  'astropy/astropy',
  'django/django',
  'matplotlib/matplotlib',
  'mwaskom/seaborn',
  'pallets/flask',
  'psf/requests',
  'pydata/xarray',
  'pylint-dev/pylint',
  'pytest-dev/pytest',
  'scikit-learn/scikit-learn',
  'sphinx-doc/sphinx',
  'sympy/sympy',
  'marshmallow-code/marshmallow',
  'pvlib/pvlib-python',
  'pydicom/pydicom',
  'pylint-dev/astroid',
  'pyvista/pyvista',
  'sqlfluff/sqlfluff',
]);

const SWEGYM_REPOS = new Set([
  'bokeh/bokeh',
  'conan-io/conan',
  'dask/dask',
  'facebookresearch/hydra',
  'getmoto/moto',
  'hypothesisworks/hypothesis',
  'iterative/dvc',
  'modin-project/modin',
  'pandas-dev/pandas',
  'project-monai/monai',
  'pydantic/pydantic',
  'python/mypy',
]);

export type FamilyHints = {
  repo: string;
  /** The row's own image column, when it has one. */
  image: string | null;
  /** The subset's name, in rows prepared for a trainer. */
  subset: unknown;
  /** The row has its own evaluation columns. */
  ownEvaluation: boolean;
};

/** Null when the family is unknown: the row then needs an image column, or the command `--family`. */
export function detectFamily(hints: FamilyHints): DatasetFamily | null {
  const repo = hints.repo.toLowerCase();
  if (repo.startsWith('swesmith/') || /(^|\/)swesmith\./.test(hints.image ?? '')) return 'swesmith';
  if (SWEBENCH_REPOS.has(repo)) return 'swebench';
  if (SWEGYM_REPOS.has(repo) || hints.subset === 'gym') return 'swegym';
  return hints.image !== null || hints.ownEvaluation ? 'custom' : null;
}

/** The published image of an instance; null for families whose rows name their image. Registries require lower case. */
export function familyImage(family: DatasetFamily, instanceId: string): string | null {
  const id = instanceId.toLowerCase();
  switch (family) {
    case 'swebench':
      return `swebench/sweb.eval.x86_64.${id.replaceAll('__', '_1776_')}:latest`;
    case 'swegym':
      return `xingyaoww/sweb.eval.x86_64.${id.replaceAll('__', '_s_')}:latest`;
    default:
      return null;
  }
}

/** Whether an image is a folder or an archive on this machine: a scheme and an absolute path, or just the path of a .sif file. */
export const isImagePath = (image: string): boolean =>
  /^((dir|host\+dir|docker-archive|oci|sif):\/[^\n]+|\/[^\n]+\.sif)$/.test(image);

/** Adds a missing tag, so that the same image has one name on every node; a path stays as it is. */
export function withTag(image: string): string {
  if (isImagePath(image)) return image;
  const name = image.slice(image.lastIndexOf('/') + 1);
  return name.includes(':') || image.includes('@') ? image : `${image}:latest`;
}
