'use strict'

// Stack parsers, by which error trackers group errors, on stacks with hops: each line of a frame is parsed as
// a frame, and no other line is.

const { spawnSync } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const test = require('ava')
const errorStackParser = require('error-stack-parser')
const StackUtils = require('stack-utils')
const stackTraceParser = require('stacktrace-parser')
const { inherited, node, register } = require('../helpers/run')

/** Parsers differ in what they make of "async" before a place. @param {string} place */
const withoutAsync = (place) => place.replace(/^async /, '')

// nodeStackLineParser of @sentry/core 10 (MIT), which is too large for this: what it takes for a frame.
const SENTRY = /at (?:async )?(?:(?=.*\)\s*$)(.+?)\s+\()?(?:(.+):(\d+):(\d+)?|([^)]+))\)?/

/** Returns file and line of each frame. @type {Record<string, (stack: string) => string[]>} */
const parsers = {
  Sentry: (stack) => stack.split('\n').slice(1).map((line) => SENTRY.exec(line)).filter(Boolean)
    .map((found) => `${found?.[2] ?? found?.[5]}:${found?.[3]}`),
  'error-stack-parser, as Bugsnag and Rollbar': (stack) =>
    errorStackParser.parse(/** @type {any} */ ({ name: 'Error', message: 'x', stack })).map(({ fileName, lineNumber }) => `${fileName}:${lineNumber}`),
  'stacktrace-parser': (stack) => stackTraceParser.parse(stack).map(({ file, lineNumber }) => `${file}:${lineNumber}`),
  'stack-utils': (stack) => {
    const utils = new StackUtils({ cwd: '/none' })
    const frames = stack.split('\n').slice(1).map((line) => utils.parseLine(line))
    return frames.filter((frame) => frame?.line !== undefined).map((frame) => `${frame?.file}:${frame?.line}`)
  }
}

/** Labels and functions whose names end in "at", a package, functions without a name. */
const app = `
  const http = require('node:http')
  const { AsyncResource } = require('node:async_hooks')
  const { send } = require('@scope/chat')
  async function concat (text) {
    return await send(text)
  }
  const server = http.createServer(async (request, response) => {
    const beat = new AsyncResource('heartbeat')
    try {
      await (async () => {
        await beat.runInAsyncScope(() => concat(request.url))
      })()
      response.end()
    } catch (error) {
      response.end(error.stack)
    }
  })
  server.listen(0, '127.0.0.1', async () => {
    const base = 'http://127.0.0.1:' + server.address().port
    let last
    for (const url of process.argv.slice(2)) last = await (await fetch(base + url)).text()
    console.log(last)
    process.exit()
  })
`

const library = `
  const waiting = []
  let timer
  exports.send = (text) => new Promise(function ask (resolve, reject) {
    waiting.push({ resolve, reject, text })
    if (timer === undefined) timer = setInterval(answer, 2)
  }).catch((error) => { Error.captureStackTrace(error); throw error })
  function answer () {
    const { resolve, reject, text } = waiting.shift() ?? {}
    if (text === '/chat') reject(new Error('x'))
    else resolve?.(text)
  }
`

/** @param {import('ava').ExecutionContext} t */
function folderOf (t) {
  const folder = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'longstack-parsers-'))
  t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
  const directory = path.join(folder, 'node_modules', '@scope', 'chat')
  fs.mkdirSync(directory, { recursive: true })
  fs.writeFileSync(path.join(directory, 'index.js'), library)
  fs.writeFileSync(path.join(folder, 'app.js'), app)
  return folder
}

/** The frames of a stack as Node prints them. @param {string} stack */
const framesOf = (stack) => stack.split('\n').filter((line) => line.startsWith('    at '))
  .map((line) => /^ {4}at (?:.* \(|async )?(.*?:\d+):\d+\)?$/.exec(line)?.[1] ?? line)

test('parsers find the same frames, whatever the lines between them', async (t) => {
  const { stdout } = await node(['-r', register, path.join(folderOf(t), 'app.js'), '/chat'])
  const stack = stdout.trimEnd()
  t.regex(stack, /── GET \/chat/)
  if (process.env.ENGINE !== 'js') t.regex(stack, / in @scope\/chat\n/) // else the reader is not in it
  const expected = framesOf(stack)
  t.true(expected.length > 3)
  for (const [name, parse] of Object.entries(parsers)) t.deepEqual(parse(stack).map(withoutAsync), expected, `${name}\n${stack}`)
})

test("errors: 'print': parsers find only Node's frames, whatever the request", async (t) => {
  const folder = folderOf(t)
  const stackOf = async (/** @type {string[]} */ urls) =>
    (await node(['-r', register, path.join(folder, 'app.js'), ...urls], { env: { LONGSTACK_ERRORS: 'print' } })).stdout.trimEnd()
  const bare = spawnSync(process.execPath, [path.join(folder, 'app.js'), '/chat'], { env: inherited, encoding: 'utf8' }).stdout.trimEnd()
  t.is(await stackOf(['/chat']), bare)
  t.is(await stackOf(['/other', '/chat']), bare)
  for (const [name, parse] of Object.entries(parsers)) {
    t.deepEqual(parse(bare).map(withoutAsync), framesOf(bare), name)
  }
})
