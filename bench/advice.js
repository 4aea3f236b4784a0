'use strict'

// Checks the advice on artificial services: node bench/advice.js [--node PATH] [--only report|pid] [--seconds
// 8] [--brief] [NAME…]. Each service in test/fixtures/verdict runs once with LONGSTACK_RECORD for longstack
// report, and once untraced under an endless load for longstack PID. The first two findings are compared with
// test/fixtures/verdict/expected.js. Right findings name the cause; wrong ones blame something else, or give
// harmful advice; a result without the cause is silent. For a healthy service only silence is right.
// --brief prints no sentences.

const { execFile, spawn } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { setTimeout: delay } = require('node:timers/promises')
const { parseArgs, promisify } = require('node:util')
const { faulty, healthy } = require('../test/fixtures/verdict/expected')

const WARM_MS = 2500
const MAX_RUN_MS = 60_000
const JUDGED = 2 // findings
const NOTHING = /(?!)/
const BUSY_MACHINE = / waited for a CPU / // true of any service on a busy machine
const root = path.join(__dirname, '..')
const fixtures = path.join(root, 'test', 'fixtures', 'verdict')
const cli = path.join(root, 'lib', 'cli', 'main.js')
const register = path.join(root, 'lib', 'register.js')
const run = promisify(execFile)

/** @typedef {import('../test/fixtures/verdict/expected').Expectation} Expectation */

/**
 * Runs the command and returns its findings as text. It may exit with 1, for instance for a blocked process.
 * @param {string} node
 * @param {string[]} args
 * @returns {Promise<string[]>}
 */
async function findingsOf (node, args) {
  const options = { maxBuffer: 1e9, timeout: MAX_RUN_MS }
  const { stdout, stderr } = await run(node, [cli, ...args, '--json'], options).catch((error) => error)
  if (!stdout.startsWith('{')) throw new Error(stderr)
  const { verdict, findings = verdict } = JSON.parse(stdout)
  return findings.map(({ sentence, advice }) => {
    const remedy = advice ?? verdict.find((other) => other.sentence === sentence)?.advice
    return remedy === undefined ? sentence : `${sentence} → ${remedy}`
  })
}

/** @param {string} node @param {string[]} args of the service @param {Record<string, string>} env */
async function reportOn (node, args, env) {
  const file = path.join(os.tmpdir(), `longstack-advice-${process.pid}.rec`)
  fs.rmSync(file, { force: true })
  const options = { env: { ...process.env, ...env, LONGSTACK_RECORD: file }, timeout: MAX_RUN_MS }
  await run(node, ['-r', register, ...args], options)
  try {
    return await findingsOf(node, ['report', file])
  } finally {
    fs.rmSync(file, { force: true })
  }
}

/** @param {string} node @param {string[]} args @param {Record<string, string>} env @param {string} seconds */
async function adviceOn (node, args, env, seconds) {
  const options = { env: { ...process.env, ...env, ENDLESS: '1' }, stdio: 'ignore' }
  const service = spawn(node, args, options)
  try {
    await delay(WARM_MS)
    if (service.exitCode !== null) throw new Error(`the service ended with ${service.exitCode}`)
    return await findingsOf(node, [String(service.pid), '--seconds', seconds])
  } finally {
    service.kill('SIGKILL')
    await delay(500) // its load ends too
  }
}

/**
 * @param {string[]} findings
 * @param {Partial<Expectation>} expectation no cause for a healthy service
 * @param {'report' | 'pid'} mode
 * @returns {'right' | 'silent' | 'wrong'}
 */
function judge (findings, expectation, mode) {
  const { cause: ofBoth, [mode]: cause = ofBoth, also = NOTHING, never = [] } = expectation
  if (cause === undefined) return findings.every((text) => also.test(text)) ? 'right' : 'wrong'
  const judged = findings.slice(0, JUDGED)
  if (judged.some((text) => never.some((advice) => advice.test(text)))) return 'wrong'
  if (!judged.every((text) => cause.test(text) || also.test(text))) return 'wrong'
  return judged.some((text) => cause.test(text)) ? 'right' : 'silent'
}

/** Starts a server that the services use, and returns its port. @param {string} name */
async function start (name) {
  const file = path.join(fixtures, `${name}.js`)
  const child = spawn(process.execPath, [file], { stdio: ['pipe', 'pipe', 'inherit'] })
  const [port] = await once(child.stdout, 'data')
  return { child, variable: `${name.toUpperCase()}_PORT`, port: String(port).trim() }
}

/**
 * @param {string[]} names the chosen services; all if there are none
 * @returns {Array<[string, Partial<Expectation>]>}
 */
function servicesOf (names) {
  const files = fs.readdirSync(path.join(fixtures, 'healthy')).map((file) => path.basename(file, '.js'))
  const all = [
    ...Object.entries(faulty).map(([name, expectation]) => [`faulty/${name}`, expectation]),
    ...files.map((name) => [`healthy/${name}`, healthy[name] ?? {}])
  ]
  const usable = all.filter(([, { platform = process.platform }]) => platform === process.platform)
  if (names.length === 0) return usable
  return usable.filter(([name]) => names.some((part) => name.match(`^(?:${part}|.*/${part})$`)))
}

async function main () {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      node: { type: 'string', default: process.execPath },
      only: { type: 'string' },
      seconds: { type: 'string', default: '8' },
      brief: { type: 'boolean' }
    }
  })
  const servers = await Promise.all(['database', 'upstream', 'redis'].map(start))
  const ports = Object.fromEntries(servers.map(({ variable, port }) => [variable, port]))
  const modes = /** @type {const} */ (['report', 'pid'])
    .filter((mode) => values.only === undefined || mode === values.only)
  /** @type {Record<string, number>} */
  const counts = {}
  for (const [name, expectation] of servicesOf(positionals)) {
    const { file = name, env: own, args = [] } = expectation
    const env = { ...ports, ...own }
    const argv = [...args, path.join(fixtures, `${file}.js`)]
    for (const mode of modes) {
      const observe = mode === 'report' ? reportOn : adviceOn
      const findings = await observe(values.node, argv, env, values.seconds)
        .catch((error) => [`Failed: ${error.message}`])
        .then((all) => all.filter((text) => !BUSY_MACHINE.test(text) || expectation.cause?.test(text)))
      const score = judge(findings, expectation, mode)
      const group = `${name.split('/')[0]} ${mode} ${score}`
      counts[group] = (counts[group] ?? 0) + 1
      console.log(`${score.padEnd(7)}${mode.padEnd(7)}${name}`)
      if (!values.brief) for (const text of findings.slice(0, JUDGED)) console.log(`         ${text}`)
    }
  }
  console.log(Object.entries(counts).sort().map(([group, count]) => `${group} ${count}`).join('\n'))
  for (const { child } of servers) child.stdin?.end()
}

main()
