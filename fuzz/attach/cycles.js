'use strict'

// Ways to attach to a process and to leave it again.

const { spawn } = require('node:child_process')
const path = require('node:path')
const { setTimeout: sleep } = require('node:timers/promises')
const { ask: askTarget } = require('../../lib/ask/processes')
const { inspectProcess } = require('../../lib/ask/inspector')

const command = path.join(__dirname, '..', '..', 'lib', 'cli', 'main.js')

/**
 * @typedef {import('../../lib/ask/processes').Asked} Asked
 * @typedef {object} Subject
 * @property {number} pid
 * @property {string} spans file
 * @property {() => number} random
 * @property {(question: string, argument?: any) => Promise<any>} ask the process itself
 * @property {(text: string) => void} found something wrong
 */

/** @param {Asked} asked */
const threadsOf = (asked) => asked.processes.flatMap(({ threads }) => threads)

/** @param {Asked} asked @param {string} name @param {object} [argument] */
const askAll = (asked, name, argument) =>
  Promise.all(threadsOf(asked).map((thread) => thread.call(name, argument)))

/** @param {Subject} subject */
async function asking ({ pid, found }) {
  const asked = await askTarget({ pids: [pid] })
  const count = threadsOf(asked).length
  if (count !== 2) found(`${count} threads answer: ${JSON.stringify(asked.refused)}`)
  return asked
}

/** Attaches with options for a moment. @param {(subject: Subject) => object} optionsOf */
const attaching = (optionsOf) => async (/** @type {Subject} */ subject) => {
  const asked = await asking(subject)
  await askAll(asked, 'attach', optionsOf(subject))
  await askAll(asked, 'snapshot')
  await sleep(subject.random() * 30)
  if (subject.random() < 0.5) await askAll(asked, 'diff')
  asked.close()
}

/** @type {Record<string, (subject: Subject) => Promise<void>>} */
const cycles = {
  plain: attaching(() => ({})),
  spans: attaching(({ spans }) => ({ spans })),
  blocked: attaching(() => ({ blocked: 5 })),
  all: attaching(({ spans }) => ({ spans, blocked: 5, filter: ['*', '-TIMER'] })),
  filter: attaching(() => ({ filter: ['TCP', 'HTTP'] })),

  async questions (subject) {
    const asked = await asking(subject)
    await Promise.all(['facts', 'open', 'requests', 'pending', 'snapshot'].map((name) => askAll(asked, name)))
    asked.close()
  },

  async attachedQuestions (subject) {
    const asked = await asking(subject)
    await askAll(asked, 'attach', { spans: subject.spans })
    await askAll(asked, 'snapshot')
    const names = ['open', 'requests', 'pending', 'diff', 'facts']
    await Promise.all(names.map((name) => askAll(asked, name)))
    asked.close()
  },

  async two (subject) {
    const first = await asking(subject)
    const second = await asking(subject)
    const { spans } = subject
    await Promise.all([askAll(first, 'attach', { blocked: 5 }), askAll(second, 'attach', { spans })])
    await sleep(subject.random() * 20)
    const both = subject.random() < 0.5 ? [first, second] : [second, first]
    both[0].close()
    await askAll(both[1], 'open')
    both[1].close()
  },

  async again (subject) {
    const asked = await asking(subject)
    await askAll(asked, 'attach', {})
    await askAll(asked, 'attach', { spans: subject.spans })
    asked.close()
  },

  async wrongOption (subject) {
    const asked = await asking(subject)
    await Promise.all(threadsOf(asked).map((thread) => thread.call('attach', { blocked: -1 })
      .then(() => subject.found('attached with a wrong option'), () => {})))
    asked.close()
  },

  async program (subject) {
    const asked = await asking(subject)
    await askAll(asked, 'attach', { blocked: 5 })
    if (subject.random() < 0.5) {
      await subject.ask('trace', { enable: true, options: { frames: 5 } })
      await sleep(subject.random() * 10)
    }
    await subject.ask('trace', { enable: false })
    asked.close()
  },

  async programFirst (subject) {
    await subject.ask('trace', { enable: true, options: { frames: 5 } })
    const asked = await asking(subject)
    await askAll(asked, 'attach', { spans: subject.spans })
    asked.close()
    await waitFor(async () => (await subject.ask('tracing'))[0].options?.frames === 5, subject, 'its options')
    await subject.ask('trace', { enable: false })
  },

  async midAnswer (subject) {
    const asked = await asking(subject)
    await askAll(asked, 'attach', { spans: subject.spans })
    const answers = ['open', 'pending', 'snapshot', 'diff'].map((name) => askAll(asked, name).catch(() => {}))
    if (subject.random() < 0.5) await sleep(subject.random() * 5)
    asked.close()
    await Promise.all(answers)
  }
}

/** Those that need a process of their own. @type {Record<string, (subject: Subject) => Promise<void>>} */
const commandCycles = {
  killed: (subject) => run(subject, 'SIGKILL', ['--spans', subject.spans, '--blocked', '5']),
  interrupted: (subject) => run(subject, 'SIGINT', []),
  early: (subject) => run(subject, 'SIGKILL', [], subject.random() * 600),
  incident
}

/** longstack PID, to its end. @param {Subject} subject */
async function incident ({ pid, found }) {
  const child = spawn(process.execPath, [command, String(pid), '--seconds', '1'])
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (part) => { text += part })
  const code = await new Promise((resolve) => child.on('close', resolve))
  if (code !== 0 || !/nothing found|next:/.test(text)) found(`longstack PID ends with ${code}: ${text}`)
}

/**
 * Runs the command, and ends it.
 * @param {Subject} subject
 * @param {NodeJS.Signals} signal
 * @param {string[]} flags
 * @param {number} [ms] after its start; undefined: once it is attached
 */
async function run (subject, signal, flags, ms) {
  const { pid, found } = subject
  const child = spawn(process.execPath, [command, 'attach', ...flags, String(pid)])
  let text = ''
  const ended = new Promise((resolve) => child.on('close', resolve))
  const attached = new Promise((resolve) => {
    child.stdout.on('data', (part) => {
      text += part
      if (/Ctrl-C detaches/.test(text)) resolve(undefined)
    })
  })
  child.stderr.on('data', (part) => { text += part })
  await Promise.race([ms === undefined ? attached : sleep(ms), ended])
  child.kill(signal)
  const code = await ended
  if (signal === 'SIGINT' && code !== 0) found(`the command ends with ${code}: ${text}`)
  // Killed before it could ask for anything: the inspector that its signal has opened stays
  if (ms !== undefined) await subject.ask('closeInspector')
}

/** Opens the inspector and closes it again, as often as a command does. @param {Subject} subject */
async function control ({ pid }) {
  const target = await inspectProcess(pid)
  const workers = await target.workers()
  for (const thread of [target, target, ...workers, ...workers]) await thread.evaluate('1')
  await target.leaveWorkers()
  if (target.isOpened) {
    await target.evaluate("setImmediate(() => process.getBuiltinModule('inspector').close()).unref(), 1")
  }
  target.isOpened = false
  await target.close()
}

/**
 * @param {() => Promise<boolean>} isSo
 * @param {Subject} subject
 * @param {string} what
 */
async function waitFor (isSo, { found }, what) {
  for (const end = performance.now() + 20_000; performance.now() < end;) {
    if (await isSo()) return
    await sleep(5)
  }
  found(`waited in vain for ${what}`)
}

module.exports = { commandCycles, control, cycles, waitFor }
