'use strict'

// Selection of tests per place. TESTS names the place; .ci/run and the GitHub workflows set it.
//
//   unset     everything; a sample of slow tests
//   all       everything in full: on the oldest version of Node
//   rest      the same, except tests that `npm test` has run in full
//   version   a sample, on each of the others: tests that depend on Node itself, which are hooks, promises,
//             streams, errors, spans, the addon. The newest version also runs tests of terminals and other
//             programs; 22, whose hooks are those of 20, and 24, whose are those of 26, run the tests of
//             `npm test`.
//   platform  tests that depend on the system and its processor and need only Node, on each platform
//   windows   tests that can run on Windows, with the JavaScript engine

const NEWEST = 26
const CORE = [22, 24] // run only the core

const scope = process.env.TESTS
const major = Number(process.versions.node.split('.', 1)[0])

/** Whether slow tests run in full, not as a sample. */
const runsAll = scope === 'all' || scope === 'rest'

/** Tests independent of the version of Node: files, amounts, arithmetic, the report. */
const onOldest = [
  'chains/{asyncids,uptime}',
  'cli/cli-env', // quoting in shells
  'examples/**',
  'faults/{collector,files,process}',
  'fuzz/**',
  'handles/terminal',
  'house/**',
  'layouts/paths',
  'live/{hostile-names,hostile-sockets}', // output of commands, whoever responds
  'native/{binary,mach-o,musl,trial}',
  'package/{docs,input,install,registry,transparent-suites,types,windows}', // the oldest installs for all versions
  'path/random', // invariants of recordings
  'profile/profile-formats',
  'report/**',
  'sinks/otlp-jaeger', // details that Jaeger accepts; every version sends them
  'spans/{asked,spans-line,spans-load,waits-drivers}',
  'unit/**' // parts without I/O
]

/** Tests that need not run on versions in between: of terminals and other processes. */
const onOldestAndNewest = [
  'cli/**',
  'handles/wait-graph',
  'live/{incident,metrics,refused,socket-files,top-figures,top-screen}',
  'profile/profile-command',
  'runners/{chains,jest-vitest,lines}', // every version tests the leak gate, and how realms end
  'sinks/{otlp,sinks-outputs,sinks-pipes,sinks-preload}'
]

const onPlatforms = [
  'attribution/{attribution,attribution-flows,collections,random-programs}',
  'chains/{chains-*,workers}',
  'hooks/**',
  'native/{native-contents,native-fire,native-matches-js}',
  'spans/{critical-path,spans}',
  'stacks/odd-errors',
  'termination/{settled,termination}',
  'unit/**'
]

/** Tests that `npm test` runs only in part: a sample, or without parts that a machine may lack. */
const coreInPart = [
  'attribution/{attribution,random-programs}',
  'blocked/blocked-domain',
  'cli/cli',
  'house/workflows',
  'native/native-matches-js'
]

/** Further tests of `npm test`: the heart of every feature, in files that take a few seconds. */
const core = [
  'attribution/{attribution-flows,on-error}',
  'chains/{carried,chains-*,errors-off,filters,hostile-types,listener-registered,messages,modes,modes-threads}',
  'chains/{processes,realms,records,requests-labels,without-promises,workers}',
  'cli/{cli-run,doctor}',
  'defects/{attribution,formatters,keys,small,span-places}',
  'handles/{handles,pending,printing,requests-in-flight,signal,snapshots,why,why-others,why-requests}',
  'hooks/**',
  'house/{architecture,documents,scope}',
  'intercept/{intercept,intercept-same}',
  'live/cluster',
  'package/{docs,input,modules,start-up}',
  'report/{report,report-text}',
  'sinks/sinks-preload',
  'spans/{critical-path,spans,spans-line,spans-web}',
  'stacks/{errors-print,formatters,odd-errors,parsers,source-maps}',
  'termination/settled',
  'transparency/{iterators,kept}',
  'unit/**'
]
const onWindows = ['package/windows', 'unit/**']

/** Returns patterns for Ava's configuration. @returns {string[]} */
function testFiles () {
  if (scope === 'platform') return onPlatforms.map(patternOf)
  if (scope === 'windows') return onWindows.map(patternOf)
  const files = scope === 'version' && CORE.includes(major) ? coreFiles() : [patternOf('**')]
  const elsewhere = major === NEWEST ? onOldest : [...onOldest, ...onOldestAndNewest]
  const leftOut = scope === 'version' ? elsewhere : scope === 'rest' ? core : []
  return [...files, ...leftOut.map((name) => `!${patternOf(name)}`)]
}

/** Returns the test files of `npm test` (core.config.js). @returns {string[]} */
const coreFiles = () => [...core, ...coreInPart].map(patternOf)

/** @param {string} name below test/ */
const patternOf = (name) => `test/${name}${name.endsWith('**') ? '/*' : ''}.test.js`

module.exports = {
  core, coreFiles, coreInPart, onOldest, onOldestAndNewest, onPlatforms, onWindows, runsAll, testFiles
}
