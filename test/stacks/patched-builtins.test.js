'use strict'

// A program may replace any built-in. Node's core does not mind, so longstack must not
// either.

const test = require('ava')
const { program } = require('../helpers/run')

const WAYS = 2 // programs at a time

const patched = [
  'Array.isArray', 'Array.from', 'Array.prototype.map', 'Array.prototype.filter', 'Array.prototype.slice',
  'Array.prototype.some', 'Array.prototype[Symbol.iterator]', 'Map.prototype.get', 'Map.prototype.set', 'Map.prototype[Symbol.iterator]',
  'Set.prototype.has', 'Set.prototype.add', 'WeakMap.prototype.get', 'WeakMap.prototype.set', 'WeakRef.prototype.deref',
  'FinalizationRegistry.prototype.register', 'String.prototype.split', 'String.prototype.replace', 'String.prototype.startsWith',
  'RegExp.prototype.test', 'Object.getOwnPropertyDescriptor', 'Object.defineProperty', 'Object.assign',
  'Reflect.defineProperty', 'Math.max', 'Error.captureStackTrace', 'performance.now'
]

/**
 * Timers, promises, sockets, files, errors that are read, and one that nobody catches.
 * @param {string} name
 */
const source = (name) => `
  const fs = require('node:fs')
  const net = require('node:net')
  const say = (text) => fs.writeSync(1, text + '\\n')
  process.on('uncaughtException', (error) => say('uncaught ' + error.message))
  process.on('exit', (code) => say('exit ' + code))
  const server = net.createServer((socket) => socket.end('x')).listen(0, '127.0.0.1', () => {
    const { port } = server.address()
    ${name} = () => { throw new Error('not for you') }
    setImmediate(() => say('immediate'))
    ;(async () => { await 0; say('await') })()
    const early = new Error('early')
    setTimeout(() => say(typeof early.stack + ' ' + typeof new Error('late').stack), 1)
    fs.readFile('/nonexistent', (error) => say(error.code + ' ' + typeof error.stack))
    net.connect(1, '127.0.0.1').on('error', (error) => say(error.code + ' ' + typeof error.stack))
    net.connect(port, '127.0.0.1').resume().on('close', () => { say('close'); server.close() })
    setTimeout(() => { throw new Error('boom') }, 2)
    setTimeout(() => { gc(); setTimeout(gc, 10) }, 10)
  })`

test('a program that patches built-ins runs as it does without longstack', async (t) => {
  t.timeout(120_000)
  const queue = [...patched]
  async function worker () {
    for (let name = queue.shift(); name !== undefined; name = queue.shift()) {
      const [bare, traced] = await Promise.all([false, true].map((preload) => run(name, preload)))
      t.deepEqual(traced, bare, name)
      t.true(bare.lines.includes('uncaught boom') && bare.lines.includes('exit 0'), name)
    }
  }
  await Promise.all(Array.from({ length: WAYS }, worker))
})

/** @param {string} name @param {boolean} preload */
async function run (name, preload) {
  const { stdout, stderr, code } = await program(source(name), { preload, args: ['--expose-gc'] })
  return { lines: stdout.split('\n').sort(), stderr, code }
}
