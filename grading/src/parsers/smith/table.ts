/** Log readers of SWE-smith by the names in its table of projects (`grading/data/swesmith.json`). */
import { jq, redis } from '../c.ts';
import { jest } from '../jest.ts';
import type { Reader } from '../reader.ts';
import { boostTest, lit } from './boost.ts';
import { cargoTest } from './cargo.ts';
import { catch2 } from './catch2.ts';
import { drizzleTurbo, jasmine, karma, missing, mochaOrSummary } from './counts.ts';
import { ctest } from './ctest.ts';
import { goTest } from './go.ts';
import { gtest } from './gtest.ts';
import { gradleXml, surefire } from './java.ts';
import {
  asyncProfiler,
  bun,
  coost,
  dotnet,
  fastllm,
  i2pd,
  jakttest,
  kakoune,
  libsass,
  platformio,
  pycdc,
  redisTcl,
  tippecanoe,
} from './lines.ts';
import { markedJs, mocha, reactPdf, vitest } from './marks.ts';
import { cppPytest, mypy, pytestSummary, pytestVerbose, pytestXdist, slugify, tornado } from './python.ts';
import { rubyTests } from './ruby.ts';
import { aria2, phpunitTestdox, pugixml, ugrep } from './totals.ts';

export const SMITH: Record<string, Reader> = {
  'python-pytest-v': pytestVerbose,
  'python-pytest-rA': pytestSummary,
  'python-xdist-v': pytestXdist,
  'python-slugify': slugify,
  tornado,
  mypy,
  'go-test': goTest,
  'cargo-test': cargoTest,
  'maven-surefire': surefire,
  'gradle-junit-xml': gradleXml,
  jest,
  mocha,
  vitest,
  karma,
  jasmine,
  'mocha-or-summary': mochaOrSummary,
  'drizzle-turbo': drizzleTurbo,
  'react-pdf': reactPdf,
  marked: markedJs,
  'qunit-missing': missing,
  ctest,
  gtest,
  catch2,
  'boost-test': boostTest,
  lit,
  'cpp-pytest': cppPytest,
  aria2,
  ugrep,
  'redis-tcl': redisTcl,
  i2pd,
  fastllm,
  jakttest,
  'async-profiler': asyncProfiler,
  coost,
  tippecanoe,
  kakoune,
  platformio,
  libsass,
  bun,
  pugixml,
  pycdc,
  'c-make-check': jq,
  'c-valkey': redis,
  'csharp-virtualclient': dotnet,
  'phpunit-testdox': phpunitTestdox,
  ruby: rubyTests,
};
