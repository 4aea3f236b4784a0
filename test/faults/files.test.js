'use strict'

// Spans files that cannot be written: the program behaves as without longstack, one line on stderr reports
// the fault, and every span is in the file, or counted as pending or dropped.

const { spawnSync } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')
const test = require('ava')
const { buildShim, compare, countSpans, temporary, testPlans, ways } = require('../helpers/faults')

const ON = 'switchFaults("on")'
const OFF = 'switchFaults("off")'
const WAIT = 'await wait(1100)' // after a fault longstack tries again each second
const WRITE = 'trace?.stats()' // returns when every span that ended has been written, or the write has failed

const { shim } = buildShim()
const isRoot = process.getuid?.() === 0

/** @param {Record<string, string>} faults */
const preloaded = (faults) => ({ ...(shim !== undefined && { LD_PRELOAD: shim }), FAULT_NAME: 'spans', ...faults })

/**
 * @typedef {object} Case
 * @property {Record<string, string>} [env]
 * @property {string} [shell]
 * @property {(directory: string) => string} [spans] default: spans.jsonl in it
 * @property {(directory: string) => void} [prepare]
 * @property {RegExp} [says] the line of longstack on stderr; none without
 * @property {'all' | 'some'} [kept] spans that are in the file in the end
 * @property {boolean} [recovers] nothing waits in the end
 */

/** @type {Record<string, Case>} */
const cases = {
  'no fault': { kept: 'all', recovers: true },
  'a full device': { spans: () => '/dev/full', says: /the disk is full \(ENOSPC\)/ },
  'a limit of the size of files (SIGXFSZ)': { shell: 'ulimit -f 8', says: /maximum size \(EFBIG\)/, kept: 'some' },
  'a directory that is absent': { env: { THREADS: '1' }, spans: (directory) => `${directory}/none/spans.jsonl`, says: /its directory does not exist \(ENOENT\)/ },
  'a directory that vanishes': {
    prepare: (directory) => fs.mkdirSync(`${directory}/logs`),
    spans: (directory) => `${directory}/logs/spans.jsonl`,
    env: { DURING: 'fs.rmSync(dir + "/logs", { recursive: true })', AFTER: WAIT },
    says: /its directory does not exist \(ENOENT\)/
  },
  'a directory that vanishes and comes back': {
    prepare: (directory) => fs.mkdirSync(`${directory}/logs`, { recursive: true }),
    spans: (directory) => `${directory}/logs/spans.jsonl`,
    env: { DURING: `fs.rmSync(dir + "/logs", { recursive: true }); ${WAIT}`, AFTER: `${WRITE}; fs.mkdirSync(dir + "/logs"); ${WAIT}` },
    says: /its directory does not exist \(ENOENT\)/,
    kept: 'some',
    recovers: true
  },
  'a file that is deleted': {
    env: { DURING: `fs.rmSync(dir + "/spans.jsonl", { force: true }); ${WAIT}` }, kept: 'some', recovers: true
  },
  'a file that is renamed, as logrotate does': {
    env: { DURING: `if (fs.existsSync(dir + "/spans.jsonl")) fs.renameSync(dir + "/spans.jsonl", dir + "/spans.jsonl.1"); ${WAIT}` },
    kept: 'all',
    recovers: true
  },
  'a file that is copied and truncated': {
    // What is written in between is lost, as logrotate's manual says
    env: { DURING: `${WRITE}; if (fs.existsSync(dir + "/spans.jsonl")) { fs.copyFileSync(dir + "/spans.jsonl", dir + "/spans.jsonl.1"); fs.truncateSync(dir + "/spans.jsonl") }` },
    kept: 'all',
    recovers: true
  },
  'a file that becomes a directory': {
    env: { DURING: `fs.rmSync(dir + "/spans.jsonl", { force: true }); fs.mkdirSync(dir + "/spans.jsonl"); ${WAIT}` },
    says: /it is a directory \(EISDIR\)/
  },
  'stdout that is closed': { shell: 'exec >&-', spans: () => '-' },
  'stderr that is closed': { shell: 'exec 2>&-', spans: () => '/dev/full' }
}

/** @type {Record<string, Case>} */
const shimmed = {
  'a disk that is full for a while': {
    env: { FAULT_WRITE: '28', DURING: ON, AFTER: `${WRITE}; ${OFF}` }, says: /the disk is full \(ENOSPC\)/, kept: 'all', recovers: true
  },
  'a quota': { env: { FAULT_WRITE: '122', DURING: ON }, says: /the disk quota is used up \(EDQUOT\)/, kept: 'some' },
  'a device with errors': {
    env: { FAULT_WRITE: '5', DURING: ON, AFTER: `${WRITE}; ${OFF}` }, says: /the device reports an error \(EIO\)/, kept: 'all', recovers: true
  },
  'a file server that forgot the file': {
    env: { FAULT_WRITE: '116', DURING: ON, AFTER: `${WRITE}; ${OFF}` }, says: /the file server no longer knows it \(ESTALE\)/, kept: 'all', recovers: true
  },
  'writes of one byte': { env: { FAULT_WRITE: 'short', DURING: ON }, kept: 'all', recovers: true },
  'too many open files in the kernel': {
    env: { FAULT_OPEN: '23', DURING: `${ON}; fs.rmSync(dir + "/spans.jsonl", { force: true }); ${WAIT}`, AFTER: `${WRITE}; ${OFF}; ${WAIT}` },
    says: /the kernel has too many open files \(ENFILE\)/,
    kept: 'some',
    recovers: true
  }
}

/** Spans in the files of a directory, rotated ones among them. @param {string} file */
function countAll (file) {
  return [file, `${file}.1`].filter((name) => fs.existsSync(name) && fs.statSync(name).isFile())
    .reduce((sum, name) => sum + countSpans(name), 0)
}

let turn = 0

/** @param {string} title @param {Case} plan */
function testCase (title, plan) {
  const { env = {}, shell, prepare = () => {}, says, kept, recovers = false } = plan
  const { spans = (/** @type {string} */ directory) => `${directory}/spans.jsonl` } = plan
  const chosen = [ways[turn++ % ways.length]] // what fails does not depend on the engine
  test(title, async (t) => {
    for (const way of chosen) {
      const directory = temporary(t)
      const clear = () => {
        for (const name of fs.readdirSync(directory)) {
          fs.rmSync(path.join(directory, name), { recursive: true })
        }
        prepare(directory)
      }
      const variables = { REQUESTS: '24', THREADS: '0', ...env }
      const scene = { directory, prepare: clear, shell, spans: spans(directory), env: variables }
      const { traced: { stats }, lines } = await compare(t, scene, way)
      const label = `${way.capture} ${lines}`
      t.is(lines.length, says === undefined ? 0 : 1, label)
      if (says !== undefined) t.regex(lines[0], says, label)
      t.is(stats.fault, undefined, label)
      const { open, ended, written, waiting, dropped } = stats.spans
      t.deepEqual([open, ended], [0, 48], label)
      t.is(written + waiting + dropped, ended, label)
      if (kept === 'all') t.is(countAll(scene.spans), ended, label)
      if (kept === 'some') t.true(countAll(scene.spans) <= written, label)
      t.is(waiting === 0, recovers || scene.spans === '-', `${label} ${waiting}`)
    }
  })
}

testPlans(testCase, cases, Object.entries(shimmed).map(([title, plan]) => {
  return [title, { ...plan, env: preloaded(plan.env ?? {}) }]
}))

/** Returns whether this process may mount, in a namespace of its own. */
function canMount () {
  return process.platform === 'linux' && isRoot &&
    spawnSync('unshare', ['-m', 'mount', '-t', 'tmpfs', '-o', 'size=16k', 'none', '/mnt']).status === 0
}

if (canMount()) {
  const mounted = (/** @type {string} */ options) =>
    `if [ -z "$M" ]; then export M=1; exec unshare -m /bin/sh -c 'mount -t tmpfs -o ${options} none "$DIR/disk"; exec "$0" "$@"' "$0" "$@"; fi`
  testCase('a small disk fills up', {
    prepare: (directory) => fs.mkdirSync(`${directory}/disk`),
    spans: (directory) => `${directory}/disk/spans.jsonl`,
    shell: mounted('size=12k'),
    says: /the disk is full \(ENOSPC\)/
  })
  testCase('a file system is read-only', {
    prepare: (directory) => fs.mkdirSync(`${directory}/disk`),
    spans: (directory) => `${directory}/disk/spans.jsonl`,
    shell: mounted('ro'),
    says: /its file system is read-only \(EROFS\)/
  })
} else {
  test('mounting works', (t) => {
    t.log('not tried: this process may not mount')
    t.pass()
  })
}
