'use strict'

// Ends a service with a black box in each way, repeatedly, at random instants under load, and compares the
// contents of its box with what the clients know: node bench/deaths.js [--times 50] [--node PATH]. Prints one
// line per way.

const { spawn, spawnSync } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs')
const http = require('node:http')
const os = require('node:os')
const path = require('node:path')
const { createInterface } = require('node:readline')
const { setTimeout: wait } = require('node:timers/promises')
const { parseArgs } = require('node:util')

const root = path.join(__dirname, '..')
const { values } = parseArgs({
  options: { times: { type: 'string', default: '50' }, node: { type: 'string', default: process.execPath } }
})
const service = path.join(root, 'test', 'fixtures', 'box', 'service.js')
const CLIENTS = 4

/** @type {Record<string, { url?: string, flags?: string[], cause?: string }>} */
const ways = {
  'kill -9 at a random instant': {},
  'kill -9 while it is stuck': { url: '/spin', cause: 'stuck' },
  abort: { url: '/abort' },
  'segmentation fault': { url: '/crash', flags: ['--expose-internals'] },
  'full stack': { url: '/recurse', flags: ['--stack-size=60000'] },
  'full heap': { url: '/fill', flags: ['--max-old-space-size=40'], cause: 'heap' }
}

/** @param {number} port @param {string} url */
const ask = (port, url) => new Promise((resolve) => {
  const request = http.get({ port, path: url, host: '127.0.0.1', agent: false }, (response) => {
    response.resume().on('end', () => resolve(true)).on('error', () => resolve(false))
  })
  request.on('error', () => resolve(false))
})

/**
 * @param {typeof ways[string]} way
 * @returns {Promise<string | undefined>} errors in the box
 */
async function die ({ url, flags = [], cause }) {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-'))
  const args = ['-r', path.join(root, 'lib', 'register.js'), ...flags, service]
  const child = spawn(values.node, args, {
    env: { ...process.env, LONGSTACK_BOX: directory }, stdio: ['ignore', 'pipe', 'ignore']
  })
  const ended = once(child, 'exit')
  try {
    const output = createInterface(child.stdout)
    const [line] = await once(output, 'line')
    const port = Number(line.split(' ')[1])
    const load = Array.from({ length: CLIENTS }, async () => { while (await ask(port, '/ok')); })
    for (let i = 0; i < 3; i++) {
      ask(port, '/wait')
      await once(output, 'line') // the service has it
    }
    await wait(300 + Math.random() * 400)
    if (url !== undefined) ask(port, url)
    if (cause === 'stuck') {
      await once(output, 'line') // it spins
      await wait(2000)
    }
    if (url === undefined || cause === 'stuck') child.kill('SIGKILL')
    await ended
    await Promise.all(load)
    return check(directory, url, cause)
  } finally {
    child.kill('SIGKILL')
    fs.rmSync(directory, { recursive: true, force: true })
  }
}

/** @param {string} directory @param {string | undefined} url @param {string | undefined} cause */
function check (directory, url, cause) {
  const { stdout, stderr, status, signal } = spawnSync(values.node, [
    path.join(root, 'lib', 'cli', 'main.js'), directory, '--json'
  ], { encoding: 'utf8', maxBuffer: 1 << 28 })
  if (status !== 0) return `unreadable (${signal ?? status}): ${stderr.trim().split('\n')[0]}`
  const { verdict: [death], open } = JSON.parse(stdout)
  if (death?.rule !== 'death') return 'no death in the verdict'
  const names = open.map((/** @type {any} */ { name }) => name)
    .filter((/** @type {string} */ name) => name !== 'GET /ok')
  const expected = ['GET /wait', 'GET /wait', 'GET /wait', ...url === undefined ? [] : [`GET ${url}`]]
  if (names.join() !== expected.join()) return `in flight: ${names.join()}`
  if (url !== undefined && !death.sentence.includes(`for GET ${url}`)) return death.sentence
  if (death.figures.cause !== (cause ?? 'unknown')) return `cause: ${death.figures.cause}`
}

async function main () {
  for (const [name, way] of Object.entries(ways)) {
    /** @type {string[]} */
    const wrong = []
    for (let i = 0; i < Number(values.times); i++) {
      const fault = await die(way)
      if (fault !== undefined) wrong.push(fault)
    }
    console.log(`${name}: ${Number(values.times) - wrong.length} of ${values.times} right`)
    for (const fault of new Set(wrong)) console.log(`  ${fault}`)
  }
}

main()
