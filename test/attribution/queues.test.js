'use strict'

// A queue starts one request's job in the callback in which another request's job ended. An error of the job
// belongs to the request that waits for it, and never to the one before it.

const test = require('ava')
const { program, root } = require('../helpers/run')

/** Two requests: the job of GET /pay fails, whose turn comes when that of GET /picture has ended. */
const twoRequests = `
  const http = require('node:http')
  const trace = require(${JSON.stringify(root)})
  const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
  let isPaying = false
  const untilPaying = (done) => {
    const timer = setInterval(() => { if (isPaying) { clearInterval(timer); done() } }, 5)
  }
  async function makeThumbnail () { await new Promise(untilPaying) }
  async function chargeCard () { await sleep(5); throw new Error('card refused') }

  let begun
  const hasBegun = new Promise((resolve) => { begun = resolve })

  function serve ({ picture, pay }) {
    async function thumbA (response) { begun(); await picture(); response.end('ok') }
    async function thumbB (response) {
      try {
        const paid = pay()
        isPaying = true
        await paid
      } catch (error) {
        console.log(error.stack)
        console.log(JSON.stringify(trace.chain(error)))
      }
      response.end('ok')
    }
    const server = http.createServer((request, response) => {
      if (request.url === '/picture') thumbA(response)
      else thumbB(response)
    }).listen(0, '127.0.0.1', async () => {
      const get = async (path) => (await fetch('http://127.0.0.1:' + server.address().port + path)).text()
      const first = get('/picture')
      await hasBegun
      await Promise.all([first, get('/pay')])
      process.exit()
    })
  }`

/**
 * The job leads to its caller by promises: nothing is told of the other request.
 * @type {Record<string, string>}
 */
const byPromises = {
  'p-queue': `
    const { default: PQueue } = await import(${JSON.stringify(require.resolve('p-queue'))})
    const queue = new PQueue({ concurrency: 1 })
    serve({ picture: () => queue.add(makeThumbnail), pay: () => queue.add(chargeCard) })`,

  'fastq.promise': `
    const queue = require(${JSON.stringify(require.resolve('fastq'))}).promise((job) => job(), 1)
    serve({ picture: () => queue.push(makeThumbnail), pay: () => queue.push(chargeCard) })`,

  'async-mutex': `
    const { Mutex } = require(${JSON.stringify(require.resolve('async-mutex'))})
    const mutex = new Mutex()
    serve({ picture: () => mutex.runExclusive(makeThumbnail), pay: () => mutex.runExclusive(chargeCard) })`,

  'a promise that is resolved with that of the job': `
    const list = []
    let isBusy = false
    async function next () {
      const job = isBusy ? undefined : list.shift()
      if (job === undefined) return
      isBusy = true
      const result = (async () => job.run())()
      job.resolve(result)
      try { await result } catch {}
      isBusy = false
      next()
    }
    const add = (run) => new Promise((resolve) => { list.push({ run, resolve }); next() })
    serve({ picture: () => add(makeThumbnail), pay: () => add(chargeCard) })`,

  'a worker that takes jobs in a loop': `
    const list = []
    let wake
    ;(async function work () {
      for (;;) {
        for (let job; (job = list.shift());) {
          try { job.resolve(await job.run()) } catch (error) { job.reject(error) }
        }
        await new Promise((resolve) => { wake = resolve })
      }
    })()
    const add = (run) => new Promise((resolve, reject) => { list.push({ run, resolve, reject }); wake?.() })
    serve({ picture: () => add(makeThumbnail), pay: () => add(chargeCard) })`
}

for (const [name, text] of Object.entries(byPromises)) {
  test(`a job of ${name} names the request that waits for it`, async (t) => {
    const { stdout, stderr } = await program(`${twoRequests}\n(async () => {${text}\n})()`)
    t.regex(stdout, /card refused[^]*at [^]*chargeCard/, stderr)
    t.regex(stdout, /── GET \/pay · /)
    t.regex(stdout, /at thumbB /)
    t.notRegex(stdout, /GET \/picture|thumbA/)
  })
}

/** Begins a queue whose jobs have the turn one after another. */
const nextJob = `
    const add = (run) => new Promise((resolve, reject) => { list.push({ run, resolve, reject }); next() })
    const list = []
    let isBusy = false
    function next () {
      const job = isBusy ? undefined : list.shift()
      if (job === undefined) return
      isBusy = true`

/** The job calls back: the hops of who had the turn before are marked. @type {Record<string, string>} */
const byCallbacks = {
  'that calls back': `${nextJob}
      job.run((error) => { isBusy = false; next(); error ? job.reject(error) : job.resolve() })
    }
    const fail = (done) => setTimeout(() => done(new Error('card refused')), 5)
    serve({ picture: () => add(untilPaying), pay: () => add(fail) })`,

  'that throws at once': `${nextJob}
      try { job.run() } catch (error) { job.reject(error); return }
      untilPaying(() => { isBusy = false; job.resolve(); next() })
    }
    serve({ picture: () => add(() => {}), pay: () => add(() => { throw new Error('card refused') }) })`
}

for (const [name, text] of Object.entries(byCallbacks)) {
  test(`a job ${name} names the waiting request first, and marks its trigger`, async (t) => {
    const { stdout, stderr } = await program(`${twoRequests}\n${text}`)
    t.regex(stdout, /── awaited by [^]*at thumbB [^]*── GET \/pay · [^]*── triggered by /, stderr)
    const [stack, data] = stdout.split('\n[')
    t.true(stack.indexOf('GET /pay') < stack.indexOf('triggered by'))
    const hops = JSON.parse(`[${data}`)
    const marked = hops.slice(hops.findIndex(({ origin }) => origin === 'triggered'))
    t.true(marked.length > 0)
    t.true(marked.every(({ origin }) => origin === 'triggered'))
    t.true(hops.some(({ label, origin }) => label === 'GET /pay' && origin === 'awaited'))
    t.false(hops.some(({ label, origin }) => label === 'GET /picture' && origin !== 'triggered'))
  })
}

/** Nothing is awaited: whose job it is cannot be known. @type {Record<string, string>} */
const unknown = {
  'fastq, called back': `
    const queue = require(${JSON.stringify(require.resolve('fastq'))})((job, done) => {
      wait(() => done(job.isBad ? new Error('card refused') : null))
    }, 1)
    const push = (isBad, done) => queue.push({ isBad }, done)`,

  'a list, which calls the next job first': `
    const list = []
    let isBusy = false
    function next () {
      const job = isBusy ? undefined : list.shift()
      if (job === undefined) return
      isBusy = true
      wait(() => {
        isBusy = false
        next()
        job.done(job.isBad ? new Error('card refused') : null)
      })
    }
    const push = (isBad, done) => { list.push({ isBad, done }); next() }`,

  'a list that is worked off by ticks': `
    const list = []
    let isBusy = false
    function next () {
      const job = isBusy ? undefined : list.shift()
      if (job === undefined) return
      isBusy = true
      process.nextTick(() => wait(() => {
        job.done(job.isBad ? new Error('card refused') : null)
        isBusy = false
        next()
      }))
    }
    const push = (isBad, done) => { list.push({ isBad, done }); next() }`
}

/** @param {string} text defines push(isBad, done) @param {number} pictures before GET /pay */
const callbacks = (text, pictures) => `
  const http = require('node:http')
  const trace = require(${JSON.stringify(root)})
  let isPaying = false
  let pictures = 0
  function wait (done) {
    const timer = setInterval(() => { if (isPaying) { clearInterval(timer); done() } }, 5)
  }
  ${text}
  const server = http.createServer(function handle (request, response) {
    if (request.url === '/picture') pictures++
    push(request.url === '/pay', (error) => {
      if (error) console.log(error.stack + '\\n===\\n' + JSON.stringify(trace.chain(error)))
      response.end('ok')
    })
    isPaying = request.url === '/pay'
  }).listen(0, '127.0.0.1', async () => {
    const get = async (path) => (await fetch('http://127.0.0.1:' + server.address().port + path)).text()
    const first = Array.from({ length: ${pictures} }, () => get('/picture'))
    while (pictures < ${pictures}) await new Promise((resolve) => setTimeout(resolve, 5))
    await Promise.all([...first, get('/pay')])
    process.exit()
  })`

for (const [name, text] of Object.entries(unknown)) {
  for (const pictures of [1, 4]) {
    test(`${name}, ${pictures} before: the earlier request is not named`, async (t) => {
      const { stdout, stderr } = await program(callbacks(text, pictures))
      const [stack, data] = stdout.split('\n===\n')
      t.regex(stack, /── setInterval\(5\) [^]*── triggered by /, stderr)
      t.notRegex(stack, /GET \/p/)
      t.notRegex(data, /GET \/p/)
    })
  }

  test(`${name}: a job pushed while the queue is idle has its request`, async (t) => {
    const { stdout } = await program(callbacks(text, 0))
    t.regex(stdout, /── GET \/pay · /)
    t.notRegex(stdout, /triggered/)
  })
}

test('a job that no request pushed marks the previous job as its trigger', async (t) => {
  const { stdout, stderr } = await program(callbacks(`
    ${unknown['a list, which calls the next job first']}
    function tidyUp () { push(false, () => {}) }
    tidyUp()`, 0))
  t.regex(stdout, /── setInterval\(5\) [^]*── triggered by setInterval\(5\) [^]*at tidyUp /, stderr)
})

/** The request before goes on after its job, so that it is in flight when the next job fails. */
const inFlight = (/** @type {string} */ text) => callbacks(`const held = []\n${text}`, 1)
  .replace('response.end(\'ok\')', `
      held.push(response)
      if (request.url === '/pay') for (const each of held) each.end('ok')`)

const doubted = ', or a request queued behind it'

for (const [name, text] of Object.entries(unknown)) {
  test(`${name}: if the previous request is still in flight, the name is marked as uncertain`, async (t) => {
    const { stdout, stderr } = await program(inFlight(text))
    const [stack, data] = stdout.split('\n===\n')
    t.regex(stack, /── setInterval\(5\) [^]*── triggered by [^]*── GET \/picture, or a request queued behind it · /)
    const named = JSON.parse(data).filter((/** @type {any} */ { label }) => label.startsWith('GET '))
    t.is(named.length, 1, stderr)
    t.is(named[0].label, `GET /picture${doubted}`)
    t.is(named[0].origin, 'triggered')
  })
}

/** Jobs of which one asks while the answer of the other's is outstanding. @type {Record<string, string>} */
const askingJobs = {
  'when it has ended': `
    const run = (isBad, done) => setTimeout(done, 5)
    const end = ask`,

  'when it begins': `
    const run = (isBad, done) => isBad ? ask(isBad, done) : wait(done)
    const end = (isBad, done) => isBad ? done(failed) : ask(isBad, done)`,

  'later than it has ended': `
    const run = (isBad, done) => setTimeout(done, 5)
    const end = (isBad, done) => setTimeout(() => ask(isBad, done), isBad ? 5 : 10)`
}

/** The job of GET /pay begins where that of GET /picture ends, and asks. @param {string} jobs */
const asking = (jobs) => `
  const http = require('node:http')
  const { Client, serve } = require(${JSON.stringify(`${root}/test/fixtures/askers/line-client`)})
  const list = []
  const responses = []
  const times = [30, 60]
  let isBusy = false
  let port, db, failed
  const ask = (isBad, done) => db.query(times.shift() + (isBad ? ' bad' : ' x'), done)
  function wait (done) {
    const timer = setInterval(() => { if (list.length > 0) { clearInterval(timer); done() } }, 5)
  }
  ${jobs}
  function next () {
    const job = isBusy ? undefined : list.shift()
    if (job === undefined) return
    isBusy = true
    run(job.isBad, (error) => {
      failed = error
      isBusy = false
      next()
      end(job.isBad, job.done)
    })
  }
  serve((linePort) => {
    port = linePort
    db = new Client(port, { pipelined: true })
    const server = http.createServer(function handle ({ url }, response) {
      responses.push(response)
      const done = (error) => {
        if (error) console.log(error.stack)
        if (url === '/pay') for (const each of responses) each.end('ok')
      }
      list.push({ isBad: url === '/pay', done })
      if (url === '/picture') setTimeout(next, 20)
    }).listen(0, '127.0.0.1', async () => {
      const get = async (path) => (await fetch('http://127.0.0.1:' + server.address().port + path)).text()
      const first = get('/picture')
      await Promise.all([first, get('/pay')])
      process.exit()
    })
  })`

for (const [name, jobs] of Object.entries(askingJobs)) {
  test(`a job that queries ${name} does not name the previous request`, async (t) => {
    const { stdout, stderr } = await program(asking(jobs))
    t.regex(stdout, /the query failed/, stderr)
    t.notRegex(stdout, /── GET \/picture ·/)
  })
}

test('a job started by an uncertain response is uncertain, even behind many other jobs', async (t) => {
  const { stdout, stderr } = await program(`
    const http = require('node:http')
    const { Client, serve } = require(${JSON.stringify(`${root}/test/fixtures/askers/line-client`)})
    const JOBS = 50
    const list = []
    let isBusy = false
    function next () {
      const job = isBusy ? undefined : list.shift()
      if (job === undefined) return
      isBusy = true
      job(() => process.nextTick(() => { isBusy = false; next() }))
    }
    // Functions of different names: what repeats is one hop
    const jobOf = (i, name = 'job' + i) => ({ [name]: (done) => setTimeout(() => {
      if (i === JOBS) {
        console.log(new Error('the last job').stack)
        process.exit()
      }
      done()
    }, 1) })[name]
    serve((linePort) => {
      const db = new Client(linePort, { pipelined: true })
      const server = http.createServer(function handle ({ url }, response) {
        db.query('20 x', () => {
          response.end('ok')
          if (url === '/second') response.on('close', () => setTimeout(next, 50))
        })
        for (let i = 1; url === '/second' && i <= JOBS; i++) list.push(jobOf(i))
      }).listen(0, '127.0.0.1', () => {
        for (const path of ['/first', '/second']) {
          http.get({ port: server.address().port, host: '127.0.0.1', path }, (response) => response.resume())
        }
      })
    })`)
  t.regex(stdout, /the last job\n[^]*── setTimeout\(1\) [^]*at job50 /, stderr)
  t.regex(stdout, /── triggered by /)
  t.true(stdout.indexOf('triggered by') < stdout.indexOf('at job49 '))
})

test('if a job opens a connection, the previous request is marked as uncertain', async (t) => {
  const { stdout, stderr } = await program(asking(`
    const run = (isBad, done) => isBad ? new Client(port, { held: true }).query('1 bad', done) : wait(done)
    const end = (isBad, done) => { if (isBad) done(failed) }`))
  t.regex(stdout, /── on a connection opened by GET \/picture, or a request queued behind it, /, stderr)
})

/** What GET /tidy does behind its answer, until it has pushed a job. @type {Record<string, string>} */
const behindAnswers = {
  'an interval': `
    const timer = setInterval(() => {
      if (!isPaying) return
      clearInterval(timer)
      push(fail, failed)
    }, 5)`,

  timers: 'setTimeout(function poll () { isPaying ? push(fail, failed) : setTimeout(poll, 200) }, 200)',

  'an async function': `
    ;(async function poll () {
      while (!isPaying) await new Promise((resolve) => setTimeout(resolve, 5))
      push(fail, failed)
    })()`,

  'reading a file': `
    ;(function poll () {
      require('node:fs').readFile(__filename, () => isPaying ? push(fail, failed) : poll())
    })()`
}

for (const [name, text] of Object.entries(behindAnswers)) {
  test(`a job pushed after the response, by ${name}, makes the request in flight uncertain`, async (t) => {
    const { stdout, stderr } = await program(`
      const http = require('node:http')
      let isPaying = false
      const list = []
      let isBusy = false
      function next () {
        const job = isBusy ? undefined : list.shift()
        if (job === undefined) return
        isBusy = true
        job.run(() => {
          isBusy = false
          next()
          job.done()
        })
      }
      const fail = (done) => setTimeout(done, 1)
      function wait (done) {
        const timer = setInterval(() => { if (list.length > 0) { clearInterval(timer); done() } }, 5)
      }
      const push = (run, done) => { list.push({ run, done }); next() }
      function failed () {
        console.log(new Error('not tidy').stack)
        process.exit()
      }
      const server = http.createServer(function handle ({ url }, response) {
        if (url === '/pay') {
          isPaying = true
          return push(wait, () => {})
        }
        response.end()
        ${text}
      }).listen(0, '127.0.0.1', async () => {
        const { port } = server.address()
        const get = (path, done) => http.get({ port, path, host: '127.0.0.1', agent: false }, done)
        get('/tidy', (response) => response.resume().on('end', () => setTimeout(get, 20, '/pay')))
      })`)
    t.regex(stdout, /not tidy\n[^]*── setTimeout\(1\) [^]*── triggered by /, stderr)
    t.regex(stdout, /── GET \/pay, or a request queued behind it · /)
  })
}

test('if a request calls a helper twice while no other is in flight, the request is known', async (t) => {
  const { stdout, stderr } = await program(callbacks(`
    const query = (done) => setTimeout(() => done(), 2)
    const push = (isBad, done) => query(() => query(() => done(new Error('card refused'))))`, 0))
  t.regex(stdout, /card refused[^]*── GET \/pay · /, stderr)
  t.notRegex(stdout, /triggered|queued/)
})

test('code in a job of a callback queue, and what it awaits, has the right request', async (t) => {
  const { stdout, stderr } = await program(inFlight(`
    ${unknown['a list, which calls the next job first'].replace('wait(() => {', '$& if (job.isBad) hang()\n')}
    async function hang () {
      const chain = trace.chain()
      process.nextTick(() => {
        const { chain: pending } = trace.pending().find(({ at }) => at.startsWith('hang'))
        console.log('found: ' + JSON.stringify([chain, pending]))
      })
      await new Promise(() => {})
    }`))
  const found = stdout.match(/^found: (.*)$/m)?.[1]
  for (const chain of JSON.parse(found ?? stderr)) {
    const request = chain.find((/** @type {any} */ { label }) => label.startsWith('GET '))
    t.is(request.label, `GET /picture${doubted}`)
    t.is(request.origin, 'triggered')
    t.is(chain[0].origin, 'registered')
  }
})

test('handlers of Express and continuations of an async function belong to one request', async (t) => {
  const { stdout, stderr } = await program(`
    const express = require(${JSON.stringify(require.resolve('express'))})
    const later = (request, response, next) => setTimeout(next, 2)
    const load = () => new Promise((resolve) => setTimeout(resolve, 2))
    const app = express()
    app.use(later, later, later)
    app.get('/orders', later, function orders (request, response) {
      setTimeout(async function list () {
        for (let i = 0; i < 3; i++) await load()
        console.log(new Error('no orders').stack)
        response.end('ok')
      }, 2)
    })
    const server = app.listen(0, '127.0.0.1', async () => {
      await (await fetch('http://127.0.0.1:' + server.address().port + '/orders')).text()
      process.exit()
    })`)
  t.regex(stdout, /── GET \/orders · /, stderr)
  t.notRegex(stdout, /triggered/)
})

test('a request that continues after its response keeps its name', async (t) => {
  const { stdout } = await program(`
    const http = require('node:http')
    const server = http.createServer(function handle (request, response) {
      response.end('ok')
      background(3)
    }).listen(0, '127.0.0.1', async () => {
      await (await fetch('http://127.0.0.1:' + server.address().port + '/report')).text()
    })
    function background (n) { setTimeout(poll, 5, n) }
    function poll (n) {
      if (n > 0) return setTimeout(poll, 5, n - 1)
      console.log(new Error('nothing came').stack)
      process.exit()
    }`)
  t.regex(stdout, /── GET \/report · /)
  t.notRegex(stdout, /triggered/)
})

test('the creator of a shared promise is still reported', async (t) => {
  const { stdout } = await program(`${twoRequests}
    let shared
    async function load () { await new Promise(untilPaying); throw new Error('card refused') }
    const once = () => { shared ??= load(); return shared }
    serve({ picture: () => once().catch(() => {}), pay: async () => { await once() } })`)
  t.regex(stdout, /── awaited by [^]*── GET \/pay · [^]*── triggered by [^]*at load /)
})

/** A batch of two jobs: the first is resolved, the second rejected. */
const BATCH = `
    const batch = []
    function load () {
      if (batch.length === 0) {
        const timer = setInterval(function flush () {
          if (batch.length < 2) return
          clearInterval(timer)
          const error = new Error('no such row')
          globalThis.gc?.() // then nobody is known to have made it
          batch[0].resolve()
          batch[1].reject(error)
        }, 5)
      }
      return new Promise((resolve, reject) => batch.push({ resolve, reject }))
    }
    async function rowOfA () { await load() }
`

test('a batch error that is rejected again later names the first to wait for it', async (t) => {
  const { stdout, stderr } = await program(`
    const http = require('node:http')
    ${BATCH}
    let kept
    async function rowOfB () { await load().catch((error) => { kept = error }) }
    setTimeout(function later () {
      if (kept === undefined) return setTimeout(later, 5)
      Promise.reject(kept).catch((error) => { console.log(error.stack); process.exit() })
    }, 5)
    const server = http.createServer(async function handle (request, response) {
      await (request.url === '/a' ? rowOfA() : rowOfB())
      response.end()
    }).listen(0, '127.0.0.1', async () => {
      const get = (path) => fetch('http://127.0.0.1:' + server.address().port + path)
      get('/a')
      while (batch.length < 1) await new Promise((resolve) => setTimeout(resolve, 5))
      get('/b')
    })`)
  t.regex(stdout, /── awaited by [^]*at rowOfB [^]*── GET \/b · /, stderr)
  // A scavenge in between leaves the maker unknown
  const other = stdout.indexOf('GET /a')
  t.true(other === -1 || stdout.lastIndexOf('triggered by', other) !== -1, stdout)
})

test('after a response of uncertain owner, a batch error names the first to wait for it', async (t) => {
  const { stdout, stderr } = await program(`
    const http = require('node:http')
    const { Client, serve } = require(${JSON.stringify(`${root}/test/fixtures/askers/line-client`)})
    ${BATCH}
    async function rowOfB () {
      try { await load() } catch (error) { console.log(error.stack); process.exit() }
    }
    serve((port) => {
      const db = new Client(port, { pipelined: true })
      const server = http.createServer(({ url }) => {
        if (url === '/a') rowOfA()
        else db.query('50 x', url === '/b' ? rowOfB : () => {})
      }).listen(0, '127.0.0.1', () => {
        for (const path of ['/a', '/b', '/c']) fetch('http://127.0.0.1:' + server.address().port + path)
      })
    })`)
  t.regex(stdout, /no such row[^─]*── awaited by [^]*at rowOfB [^]*── triggered by [^]*at rowOfA /, stderr)
})

/** A queue of callbacks: `pump` begins the next job of `list` when the present one is done. */
const QUEUE = `
  const list = []
  let isBusy = false
  function pump () {
    if (isBusy || list.length === 0) return
    isBusy = true
    const { work, done } = list.shift()
    work(() => {
      isBusy = false
      pump()
      done()
    })
  }`

/** Requests whose jobs end in a batch. @param {string} ask calls back when the request may go on */
const batchBehindQueue = (ask) => `
    const http = require('node:http')
    const { AsyncResource } = require('node:async_hooks')
    const { Client, serve } = require(${JSON.stringify(`${root}/test/fixtures/askers/line-client`)})
    ${BATCH}
    async function rowOfB () {
      try { await load() } catch (error) { console.log(error.stack); process.exit() }
    }
    ${QUEUE}
    const work = (done) => setTimeout(done, 30)
    const ready = []
    const rows = { '/a': () => {}, '/b': rowOfA, '/c': rowOfB }
    let count = 0
    serve((port) => {
      const db = new Client(port, { pipelined: true })
      const ask = ${ask}
      const server = http.createServer(({ url }) => {
        const done = () => {
          ready.push(AsyncResource.bind(rows[url]))
          if (ready.length === 3) for (const run of ready) run()
        }
        count++
        ask(() => { list.push({ work, done }); pump() })
      }).listen(0, '127.0.0.1', async () => {
        for (const path of ['/a', '/b', '/c']) {
          const before = count
          fetch('http://127.0.0.1:' + server.address().port + path)
          while (count === before) await new Promise((resolve) => setTimeout(resolve, 1))
        }
      })
    })`

for (const [name, ask] of Object.entries({
  requests: '(done) => done()',
  'what is behind answers that may be any other\'s': "(done) => db.query('50 x', done)"
})) {
  test(`a batch error of ${name}, in a queue, names the first to wait for it`, async (t) => {
    const { stdout, stderr } = await program(batchBehindQueue(ask))
    t.regex(stdout, /no such row[^─]*── awaited by [^]*at rowOfB [^]*── triggered by [^]*at rowOfA /, stderr)
  })
}

test('a batch error of messages from another thread names the first to wait for it', async (t) => {
  const { stdout, stderr } = await program(`
    const { isMainThread, parentPort, Worker } = require('node:worker_threads')
    ${BATCH}
    async function rowOfB () {
      try { await load() } catch (error) { parentPort.postMessage(error.stack) }
    }
    if (isMainThread) {
      const worker = new Worker(__filename).on('message', (stack) => { console.log(stack); process.exit() })
      setTimeout(function sendA () { worker.postMessage('a') }, 1)
      setTimeout(function sendB () { worker.postMessage('b') }, 20)
    } else parentPort.on('message', (name) => name === 'a' ? rowOfA() : rowOfB())`)
  t.regex(stdout, /no such row[^─]*── awaited by [^]*at rowOfB [^]*at sendB [^]*── triggered by [^]*at rowOfA /, stderr)
})

test('code that rejects a batch is never stated as the cause for another waiting request', async (t) => {
  const { stdout, stderr } = await program(`
    'use strict'
    const http = require('node:http')
    const trace = require(${JSON.stringify(root)})
    ${BATCH}
    async function rowOfB () {
      try { await load() } catch (error) {
        console.log(error.stack)
        console.log(JSON.stringify(trace.chain(error).map(({ origin }) => origin)))
        process.exit()
      }
    }
    const server = http.createServer(({ url }) => { url === '/a' ? rowOfA() : rowOfB() })
    server.listen(0, '127.0.0.1', async () => {
      const get = (path) => fetch('http://127.0.0.1:' + server.address().port + path)
      get('/a')
      while (batch.length < 1) await new Promise((resolve) => setTimeout(resolve, 5))
      get('/b')
    })`, { args: ['--expose-gc'] })
  t.regex(stdout, /── awaited by [^]*at rowOfB [^]*── GET \/b · [^]*── triggered by [^]*at rowOfA [^]*── GET \/a · /, stderr)
  t.notRegex(stdout, /rejected/)
})

test('an error with an earlier unhandled rejection and a rejected batch has both as triggers', async (t) => {
  const { stdout, stderr } = await program(`
    'use strict'
    const http = require('node:http')
    ${BATCH.replace('new Error(\'no such row\')', 'kept')}
    let kept
    function rejectUnheard () {
      kept = new Error('no such row')
      globalThis.gc() // then nobody is known to have made it
      setTimeout(function rejects () { Promise.reject(kept) }, 1)
    }
    let escaped
    process.on('uncaughtException', () => escaped())
    async function rowOfB () {
      try { await load() } catch (error) { console.log(error.stack); process.exit() }
    }
    const server = http.createServer(({ url }) => ({ '/z': rejectUnheard, '/a': rowOfA, '/b': rowOfB })[url]())
    server.listen(0, '127.0.0.1', async () => {
      const get = (path) => fetch('http://127.0.0.1:' + server.address().port + path)
      get('/z')
      await new Promise((resolve) => { escaped = resolve })
      get('/a')
      while (batch.length < 1) await new Promise((resolve) => setTimeout(resolve, 5))
      get('/b')
    })`, { args: ['--expose-gc'] })
  const [, waiter, ...triggers] = stdout.split(/ (?=awaited by|triggered by)/)
  t.regex(waiter, /^awaited by [^]*at rowOfB [^]*── GET \/b · /, stdout + stderr)
  t.is(triggers.length, 2, stdout)
  t.regex(triggers[0], /at rejectUnheard [^]*── GET \/z · /)
  t.regex(triggers[1], /at rowOfA [^]*── GET \/a[ ,]/)
})

test('the code that rejects a batch and the job queued before the throwing code are distinguished', async (t) => {
  const { stdout, stderr } = await program(`
    'use strict'
    const http = require('node:http')
    const trace = require(${JSON.stringify(root)})
    ${BATCH}
    let kept
    async function rowOfB () { try { await load() } catch (error) { kept = error } }
    ${QUEUE}
    const jobs = {
      '/c': function jobOfC (done) {
        setTimeout(function untilD () { list.length === 0 ? setTimeout(untilD, 1) : done() }, 1)
      },
      '/d': function jobOfD () { setTimeout(function throwLater () { throw kept }, 1) }
    }
    process.on('uncaughtException', (error) => {
      console.log(error.stack)
      const hops = trace.chain(error).map(({ origin }) => origin)
      console.log('origins: ' + hops.filter((origin, i) => origin !== hops[i - 1]))
      process.exit()
    })
    const server = http.createServer(({ url }) => {
      if (url === '/a') return rowOfA()
      if (url === '/b') return rowOfB()
      list.push({ work: jobs[url], done () {} })
      pump()
    }).listen(0, '127.0.0.1', async () => {
      const get = async (path, isThere) => {
        fetch('http://127.0.0.1:' + server.address().port + path)
        while (!isThere()) await new Promise((resolve) => setTimeout(resolve, 1))
      }
      await get('/a', () => batch.length === 1)
      await get('/b', () => kept !== undefined)
      await get('/c', () => isBusy)
      get('/d', () => false)
    })`, { args: ['--expose-gc'] })
  const [stack, origins] = stdout.split('origins: ')
  const [, waiter, rejecter, thrower, before] = stack.split(/ (?=awaited by|triggered by)|^ {2}── (?=.* thrown here)/m)
  t.regex(waiter, /^awaited by [^]*at rowOfB [^]*── GET \/b · /, stdout + stderr)
  t.regex(rejecter, /^triggered by [^]*at rowOfA [^]*── GET \/a · /)
  t.notRegex(rejecter, /GET \/c/)
  t.regex(thrower, /^setTimeout.* thrown here [^]*at jobOfD /)
  t.regex(before, /^triggered by [^]*at jobOfC [^]*── GET \/c, or a request queued behind it/)
  t.notRegex(before, /rowOfA/)
  t.is(origins.trim(), 'awaited,triggered,thrown,triggered')
})

test('a waiter in the same request comes after the creator', async (t) => {
  const { stdout } = await program(`${twoRequests}
    let reject
    const pay = async () => {
      const cancelled = new Promise((_resolve, rejects) => { reject = rejects })
      setTimeout(function cancel () { reject(new Error('card refused')) }, 5)
      await cancelled
    }
    serve({ picture: () => sleep(1), pay })`)
  t.regex(stdout, /── setTimeout\(5\) /)
  t.regex(stdout, /── GET \/pay · /)
  t.notRegex(stdout, /triggered/)
})

test('the waiter for a driver\'s queue and the trigger of its response have separate chains', async (t) => {
  const { stdout } = await program(`
    const net = require('node:net')
    const trace = require(${JSON.stringify(root)})
    const line = []
    let socket
    let cancelB
    const peer = net.createServer((peer) => peer.on('data', () => setTimeout(() => peer.write('K'), 15)))
    function pump () { if (line.length > 0 && !socket.isBusy) { socket.isBusy = true; socket.write('q') } }
    function ask (done) { line.push(done); pump() }
    function onAnswer () { setTimeout(function cancelInA () { cancelB(new Error('cancelled')) }, 3) }
    async function flowB () {
      try {
        await new Promise((resolve, reject) => { cancelB = reject })
      } catch (error) {
        console.log(error.stack + '\\n===\\n' + JSON.stringify(trace.chain(error)))
        process.exit()
      }
    }
    peer.listen(0, '127.0.0.1', () => {
      socket = net.connect(peer.address().port, '127.0.0.1').on('data', () => {
        const job = line.shift()
        socket.isBusy = false
        pump()
        job()
      })
      setTimeout(function timerOfB () { flowB() }, 20)
      setTimeout(function timerOfA () { ask(() => {}); ask(onAnswer) }, 40)
    })`)
  const [text, data] = stdout.split('\n===\n')
  t.regex(text, /── awaited by [^]*at flowB [^]*── triggered by setTimeout\(3\) [^]*at onAnswer /)
  t.regex(text, /── on a connection opened by .*; who asked is not known ──/)
  const origins = JSON.parse(data).map((/** @type {{ origin: string }} */ { origin }) => origin)
  t.deepEqual([...new Set(origins)], ['awaited', 'triggered', 'unasked'])
})

const undici = require.resolve('undici')

test('spans and errors of an undici Pool belong to the request that called it', async (t) => {
  const { stdout, stderr } = await program(`
    const http = require('node:http')
    const trace = require(${JSON.stringify(root)})
    const { Pool, Agent, fetch: fetches } = require(${JSON.stringify(undici)})
    const spans = []
    trace.on('span', (span) => spans.push(span))
    const up = http.createServer((request, response) => {
      if (request.url.includes('/bad/')) request.socket.destroy()
      else setTimeout(() => response.end('x'), 5)
    }).listen(0, '127.0.0.1', () => {
      const base = 'http://127.0.0.1:' + up.address().port
      const pool = new Pool(base, { connections: 2 })
      const dispatcher = new Agent({ connections: 2 })
      const errors = []
      const server = http.createServer(async (request, response) => {
        const id = request.url.slice(1)
        await (await pool.request({ path: '/pool/' + id, method: 'GET' })).body.text()
        await (await fetches(base + '/fetch/' + id, { dispatcher })).text()
        if (id % 4 === 3) await pool.request({ path: '/bad/' + id, method: 'GET' }).catch((error) => {
          errors.push([id, error.stack.match(/── GET \\/(\\d+) /)?.[1], error.stack])
        })
        response.end()
      }).listen(0, '127.0.0.1', async () => {
        const get = (i) => new Promise((resolve) => http.get({
          port: server.address().port, host: '127.0.0.1', agent: false, path: '/' + i
        }, (response) => response.resume().on('end', resolve)))
        await Promise.all(Array.from({ length: 32 }, (_, i) => get(i)))
        await new Promise((resolve) => setTimeout(resolve, 100))
        const served = new Map(spans.filter(({ kind }) => kind === 'SERVER').map((span) => {
          return [span.spanId, span.attributes['url.path'].slice(1)]
        }))
        const urlOf = ({ attributes }) => attributes['url.full'] ?? attributes['url.path'] ?? ''
        const asked = spans.filter((span) => span.kind === 'CLIENT' && /\\/(pool|fetch|bad)\\//.test(urlOf(span)))
        const strange = asked.filter((span) => {
          const { parentSpanId } = span
          const own = urlOf(span).split('/').at(-1)
          return parentSpanId !== undefined && served.get(parentSpanId) !== own
        })
        const known = asked.filter(({ parentSpanId }) => served.has(parentSpanId))
        const isRight = ([id, told]) => id === told
        console.log(JSON.stringify({
          asked: asked.length, strange: strange.length, known: known.length, errors: errors.length,
          wrong: errors.filter((error) => !isRight(error))
        }))
        process.exit()
      })
    })`)
  const counts = JSON.parse(stdout === '' ? JSON.stringify(stderr) : stdout)
  t.deepEqual(counts.wrong, [])
  t.is(counts.errors, 8)
  t.is(counts.asked, 72)
  t.is(counts.strange, 0)
  t.true(counts.known >= 40, `of ${counts.asked} spans ${counts.known} are below a request`)
})
