'use strict'

// Which tests run where, and how much of them: the one rule. TESTS names the place; .ci/run sets it, and the
// workflows of GitHub.
//
//   unset     everything; of what takes long, a sample
//   all       everything, whole: on the oldest version of Node
//   rest      the same, but for what `npm test` has run whole
//   version   a sample, on each of the others: what rests on Node itself, which is hooks, promises, streams,
//             errors, spans, the addon. The newest also has what rests on terminals and other programs; 22,
//             whose hooks are those of 20, and 24, whose are those of 26, have what `npm test` runs.
//   platform  what rests on the system and its processor and needs nothing but Node, on each platform
//   windows   what can run on Windows, with the JavaScript engine

const NEWEST = 26
const CORE = [22, 24] // have the core alone

const scope = process.env.TESTS
const major = Number(process.versions.node.split('.', 1)[0])

/** Whether what takes long runs whole, not as a sample. */
const runsAll = scope === 'all' || scope === 'rest'

/** Rests on no version of Node, or on what is the same in each: files, amounts, arithmetic, the report. */
const onOldest = [
  'chains/{asyncids,uptime}',
  'examples/**',
  'faults/{collector,files,process}',
  'fuzz/**',
  'handles/terminal',
  'house/**',
  'layouts/paths',
  'native/{binary,mach-o,musl}',
  'package/{docs,input,install,registry,transparent-suites,types,windows}', // the oldest installs for each version
  'report/**',
  'spans/{asked,spans-line,spans-load,waits-drivers}',
  'unit/**' // parts without I/O
]

/** On versions between them it is what it is on the oldest and the newest: terminals, other processes. */
const onOldestAndNewest = [
  'cli/**',
  'handles/wait-graph',
  'live/{incident,metrics,refused,socket-files,top-figures,top-screen}',
  'native/trial',
  'profile/{profile-command,profile-formats}',
  'runners/{chains,jest-vitest,lines}', // the gate, and how realms end, are tested on each
  'sinks/{otlp,otlp-jaeger,sinks-outputs,sinks-pipes,sinks-preload}'
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

/** What `npm test` runs only in part: a sample, or without what a machine may lack. */
const coreInPart = [
  'attribution/{attribution,random-programs}',
  'blocked/blocked-domain',
  'cli/cli',
  'house/workflows',
  'native/native-matches-js'
]

/** What `npm test` runs besides: the heart of every feature, in files that take a few seconds. */
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

/** What `npm test` runs (core.config.js). @returns {string[]} */
const coreFiles = () => [...core, ...coreInPart].map(patternOf)

/** @param {string} name below test/ */
const patternOf = (name) => `test/${name}${name.endsWith('**') ? '/*' : ''}.test.js`

module.exports = {
  core, coreFiles, coreInPart, onOldest, onOldestAndNewest, onPlatforms, onWindows, runsAll, testFiles
}
