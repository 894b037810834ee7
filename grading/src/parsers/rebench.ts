/** Parsers of SWE-rebench V2 (commit c71902a) by name, without the prefix `parse_log_`. */

import { lein } from './clojure.ts';
import { botan, cppPytest, cppTestLines, ctestLines, plenary } from './cpp.ts';
import { dartExpanded, dartJson, dartMelos } from './dart.ts';
import { exunit } from './elixir.ts';
import { haskell, hspec } from './haskell.ts';
import { julia } from './julia.ts';
import { pytestNebo } from './nebo.ts';
import { anyMarks, mochaNumbered, mochaWithColon, nestedTap, npx } from './nodelogs.ts';
import { alcotest, brackets, dune, statusFirst } from './ocaml.ts';
import { pest } from './php.ts';
import { rCheck, testthat } from './r.ts';
import type { Reader } from './reader.ts';
import { minitestClasses, minitestVerbose } from './ruby.ts';
import { munit, scalatest, scalatestSuites } from './scala.ts';
import { javaMaven, javaReactor, kotlin } from './surefire.ts';
import { dotnet, xctest } from './xctest.ts';
import { combinedReports, firstReport, gradlew, junitText, wholeReport } from './xmllogs.ts';

/** Parsers that swebench lacks. SWE-rebench misspells some names. */
export const REBENCH: Record<string, Reader> = {
  cpp: cppPytest,
  cpp_v2: cppTestLines,
  cpp_v3: botan,
  cpp_v4: ctestLines,
  csharp: dotnet,
  dart: dartJson,
  dart_v2: dartMelos,
  dart_v3: dartExpanded,
  elixir: exunit,
  gradlew_v1: gradlew,
  haskell,
  haskell_v2: hspec,
  java_mvn: javaMaven,
  java_mvn_v2: javaReactor,
  js: mochaWithColon,
  js_2: mochaNumbered,
  js_3: nestedTap,
  js_4: anyMarks,
  julia,
  junit: junitText,
  kotlin_junit: kotlin,
  lein,
  lua_nvim: plenary,
  npx,
  ocaml: alcotest,
  ocaml_v2: dune,
  ocaml_v3: brackets,
  ocaml_v4: statusFirst,
  ocaml_v5: statusFirst,
  parse_combined_test_reports: combinedReports,
  parse_java_mvn: javaMaven,
  parse_java_mvn_v2: javaReactor,
  parse_logs_kotlin_junit: kotlin,
  parse_logs_r_junit: firstReport,
  parse_lua_nvim: plenary,
  parse_lue_nvim: plenary,
  parse_test_report: wholeReport,
  php_v1: pest,
  pytest_nebo: pytestNebo,
  r: testthat,
  r_junit: firstReport,
  r_v2: rCheck,
  ruby_v1: minitestClasses,
  ruby_v2: minitestVerbose,
  sbt: junitText,
  scala: scalatest,
  scala_v2: munit,
  scala_v3: scalatestSuites,
  swift: xctest,
};
