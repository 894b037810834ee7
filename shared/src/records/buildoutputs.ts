/**
 * Patterns, in the syntax of .gitignore, of files that tests and builds leave in a tree. A patch contains matching files only if git
 * tracked them at the start.
 */
export const BUILD_OUTPUTS: readonly string[] = [
  // Python
  '__pycache__/',
  '*.py[cod]',
  '*.egg-info/',
  '.eggs/',
  '.pytest_cache/',
  '.mypy_cache/',
  '.ruff_cache/',
  '.hypothesis/',
  '.tox/',
  '.nox/',
  '.venv/',
  '.ipynb_checkpoints/',
  '.coverage',
  '.coverage.*',
  // pip, setuptools and compilers
  '/build/lib/',
  '/build/lib.*/',
  '/build/bdist.*/',
  '/build/temp.*/',
  'pip-wheel-metadata/',
  '*.so',
  '*.o',
  '*.a',
  // JavaScript
  'node_modules/',
  '.npm/',
  '.yarn/cache/',
  // patch, editors
  '*.orig',
  '*.rej',
  '*.swp',
  '*~',
  '.DS_Store',
];
