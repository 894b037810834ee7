/** Log parsers of each harness, by parser name. Rows of swebench 5.x write the names with the prefix `parse_log_`. */
import { type Instance, SwefarmError } from '@swefarm/shared';
import specs from '../../data/specs.json' with { type: 'json' };
import { BROWSERS } from '../parsers/browsers.ts';
import { django } from '../parsers/django.ts';
import { reactPdf } from '../parsers/failures.ts';
import { highlightJs, lighthouse, next, prismJs, quartoCli } from '../parsers/mocha.ts';
import { matplotlib, pytest, pytestOptions, pytestPydantic, pytestV2 } from '../parsers/pytest.ts';
import type { Dialect, Reader } from '../parsers/reader.ts';
import { REBENCH } from '../parsers/rebench.ts';
import { seaborn } from '../parsers/seaborn.ts';
import { SMITH } from '../parsers/smith/table.ts';
import { pytestLive, pytestWholeNames, r2e, r2eNemo } from '../parsers/summary.ts';
import { SWEBENCH } from '../parsers/swebench.ts';
import { sympy } from '../parsers/sympy.ts';

const PYTHON: Record<string, Reader> = {
  django,
  matplotlib,
  pytest,
  pytest_options: pytestOptions,
  pytest_v2: pytestV2,
  seaborn,
  sympy,
};

/** Parsers of SWE-bench Multimodal. Only swebench 5.0.2 has them. */
const LATEST: Record<string, Reader> = {
  ...BROWSERS,
  carbon: reactPdf,
  highlightjs: highlightJs,
  lighthouse,
  next,
  prismjs: prismJs,
  quarto_cli: quartoCli,
};

/** Canonical names of parsers that swebench 4.1.0 names after a repository, and of `smith_pytest`, which older SWE-smith rows use. */
const ALIASES: Record<string, string> = {
  astroid: 'pytest',
  astropy: 'pytest_v2',
  flask: 'pytest',
  marshmallow: 'pytest',
  pvlib: 'pytest',
  pydicom: 'pytest_options',
  pylint: 'pytest_options',
  pyvista: 'pytest',
  requests: 'pytest_options',
  scikit: 'pytest_v2',
  smith_pytest: 'python-pytest-v',
  sphinx: 'pytest_v2',
  sqlfluff: 'pytest',
  xarray: 'pytest',
};

/** Harnesses that accept the names in {@link ALIASES}. */
const WITH_ALIASES = new Set<Dialect>(['4.1.0', '5.0.2', 'swegym', 'swesmith']);

/** Parsers by repository of SWE-bench (`django/django`). SWE-rebench V1 accepts these names too. */
const REPOSITORIES: Record<string, Reader> = Object.fromEntries(
  Object.entries(specs.swebench as Record<string, { log_parser: string }>).flatMap(
    ([repo, { log_parser }]) => {
      const reader = { ...PYTHON, ...SWEBENCH }[log_parser];
      return reader ? [[repo, reader]] : [];
    },
  ),
);

const READERS: Record<Dialect, Record<string, Reader>> = {
  '4.1.0': { ...PYTHON, ...SWEBENCH },
  '5.0.2': { ...PYTHON, ...SWEBENCH, ...LATEST },
  swegym: { ...PYTHON, pytest_pydantic: pytestPydantic },
  swesmith: { ...PYTHON, ...SMITH },
  'r2e-gym': { r2e, r2e_nemo: r2eNemo },
  'swe-rebench': { pytest, pytest_options: pytestOptions, pytest_v2: pytestV2, ...REPOSITORIES },
  'swe-rebench-v2': { pytest, pytest_options: pytestOptions, pytest_v2: pytestV2, ...SWEBENCH, ...REBENCH },
  'swe-lego': { pytest_rA: pytestWholeNames },
  'swe-bench-live': { pytest: pytestLive },
};

export const isDialect = (name: string): name is Dialect => Object.hasOwn(READERS, name);

/** Returns the canonical name of a parser (`parse_log_sphinx` → `pytest_v2`), or null if the harness has no such parser. */
export function parserName(name: string, dialect: Dialect): string | null {
  const short = name.replace(/^parse_log_/, '');
  const canonical =
    WITH_ALIASES.has(dialect) && Object.hasOwn(ALIASES, short) ? (ALIASES[short] ?? short) : short;
  return Object.hasOwn(READERS[dialect], canonical) ? canonical : null;
}

/**
 * Returns test name → status, as the harness of `dialect` reads the log.
 *
 * @throws SwefarmError `unknown_parser`; RangeError or SyntaxError where the harness raises an exception
 */
export function readLog(
  parser: string,
  dialect: Dialect,
  log: string,
  instance: Pick<Instance, 'instance_id' | 'repo' | 'version' | 'test_patch'>,
): Map<string, string> {
  const name = parserName(parser, dialect);
  const reader = name === null ? undefined : READERS[dialect][name];
  if (!reader) throw new SwefarmError('unknown_parser', `no log parser "${parser}" in ${dialect}`);
  return reader(log, { dialect, instance });
}

export const parserNames = (dialect: Dialect): string[] => Object.keys(READERS[dialect]).sort();
