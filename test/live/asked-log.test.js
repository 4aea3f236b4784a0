'use strict'

// The run log that a process sends to a command: blocks of a recording from the query until the command ends
// it, with gaps if the command reads too slowly.

const net = require('node:net')
const { once } = require('node:events')
const path = require('node:path')
const { setTimeout: sleep } = require('node:timers/promises')
const test = require('ava')
const { createLineReader } = require('../../lib/ask/protocol')
const { Observation } = require('../../lib/incident/observation')
const { incidentText } = require('../../lib/incident/text')
const { RecordedLines } = require('../../report/read/recorded-lines')
const { livePrograms } = require('../helpers/live')
const { recordsOf } = require('../helpers/records')

const { start, directory } = livePrograms(test)
const MANY = 20_000 // spans: more than a socket holds, with what waits for it

const PROGRAM = `
  const trace = require(${JSON.stringify(path.join(__dirname, '..', '..'))})
  const turn = () => new Promise((resolve) => setImmediate(resolve))
  process.stdin.on('data', async (data) => {
    const [name, count] = String(data).trim().split(' ')
    for (let i = 0; i < count; i++) await trace.span(name, turn)
    console.log('made', trace.stats().spans !== undefined)
  })
  console.log('ready', '1')`

let sockets = 0

/** Starts the program, and asks it for its log. @param {import('ava').ExecutionContext} t */
async function asked (t) {
  const name = path.join(directory, `s${++sockets}`)
  const program = await start(PROGRAM, { env: { LONGSTACK_SOCKET: name } })
  const socket = net.connect(path.join(`${name}.longstack`, `${program.pid}.0`))
  await once(socket, 'connect')
  t.teardown(() => socket.destroy())
  const recorded = new RecordedLines()
  recorded.nextFile()
  const seen = { lines: '', blocks: 0 }
  /** @type {Map<number, (answer: any) => void>} */
  const questions = new Map()
  const read = createLineReader(({ id, event, value, error }) => {
    if (event === undefined) return questions.get(id)?.(error ?? value)
    seen.lines += recorded.push(Buffer.from(value.block, 'base64'))
    seen.blocks++
  }, { maxLine: Infinity })
  socket.setEncoding('utf8').on('data', read)
  let last = 0
  const ask = (/** @type {string} */ question) => new Promise((resolve) => {
    questions.set(++last, resolve)
    socket.write(`${JSON.stringify({ id: last, name: question })}\n`)
  })
  const finish = () => {
    const ends = [recorded.endFile(), recorded.end()]
    const records = recordsOf(seen.lines + ends.map(({ lines }) => lines).join(''))
    return { records, problems: ends.flatMap(({ problems }) => problems) }
  }
  const make = async (/** @type {string} */ span, count = 1) => {
    program.say(`${span} ${count}`)
    return program.told('made')
  }
  return { ask, finish, make, seen, socket }
}

/** @param {any[]} records @param {string} name */
const countOf = (records, name) => records.filter((record) => record.name === name).length

test('only spans that end between two queries are sent', async (t) => {
  const { ask, finish, make, seen } = await asked(t)
  t.false(await make('before'))
  await ask('startLog')
  await make('asked', 300)
  t.deepEqual(await ask('finishLog'), { unsentMs: 0 })
  const { blocks } = seen
  await make('after')
  await ask('facts')
  t.is(seen.blocks, blocks)
  const { records, problems } = finish()
  t.deepEqual([countOf(records, 'before'), countOf(records, 'asked'), countOf(records, 'after')], [0, 300, 0])
  t.deepEqual(problems, [])
})

test('a second query continues where the first ended', async (t) => {
  const { ask, make, seen } = await asked(t)
  for (let i = 0; i < 3; i++) {
    seen.lines = ''
    await ask('startLog')
    await make('asked', 20)
    await ask('finishLog')
    t.is(countOf(recordsOf(seen.lines), 'asked'), 20)
  }
})

test('a command that queries the log again gets each span once', async (t) => {
  const { ask, finish, make } = await asked(t)
  await ask('startLog')
  await make('first', 20)
  await ask('startLog')
  await make('second', 20)
  await ask('finishLog')
  const { records } = finish()
  t.deepEqual([countOf(records, 'first'), countOf(records, 'second')], [20, 20])
})

test('a command skips what it cannot read in time, and says so', (t) => {
  const observation = new Observation('4711', 1000)
  const thread = /** @type {any} */ ({ pid: 4711, facts: { threadId: 0, title: 'app', node: 'v24.0.0', uptimeMs: 1, tracing: 'full' } })
  observation.addThread(thread)
  const words = () => incidentText(observation, [], { width: 200 })
  const block = Buffer.alloc(1 << 20).toString('base64')
  for (let i = 0; i < 60; i++) thread.onEvent('log', { block })
  t.notRegex(words(), /This command could not keep up/)
  for (let i = 0; i < 60; i++) thread.onEvent('log', { block })
  t.regex(words(), /This command could not keep up/)
  t.true(observation.log.readableLength < 70 << 20)
})

test('a command that stops reading gets parts of the log, and the length of the gaps', async (t) => {
  const { ask, finish, make, seen, socket } = await asked(t)
  await ask('startLog')
  await make('read', 100)
  socket.pause()
  await make('unread', MANY)
  socket.resume()
  do { // what waited is read first
    await make('again')
    await sleep(20)
  } while (countOf(recordsOf(seen.lines), 'again') === 0)
  const { unsentMs } = /** @type {any} */ (await ask('finishLog'))
  const { records, problems } = finish()
  t.is(countOf(records, 'read'), 100)
  const unread = countOf(records, 'unread')
  t.true(unread > 100 && unread < MANY, `${unread}`)
  t.true(unsentMs > 0)
  t.true(problems.length > 0, 'what is missing is said')
})
