'use strict'

// A program with its own stack formatter sees the same as without longstack, except for hops at the end of
// strings.

const path = require('node:path')
const test = require('ava')
const { same } = require('../helpers/both')
const { root } = require('../helpers/run')

const some = { hops: (/** @type {number} */ count) => count > 0 }
const none = { hops: (/** @type {number} */ count) => count === 0 }

/**
 * Runs the body two timers deep, after a formatter set at the start was there for some turns.
 * @param {string} body
 */
const deep = (body) => `setTimeout(() => setTimeout(() => { ${body} }, 1), 1)`

for (const [name, result] of Object.entries({
  'an array': '[error.message, sites.length > 0, typeof sites[0].getFileName()]',
  'an object': '({ message: error.message, frames: sites.length })',
  'a number': '42',
  undefined: 'undefined',
  null: 'null',
  'a function': '() => 7',
  'the call sites': 'sites'
})) {
  test(`a formatter that returns ${name}`, (t) => same(t, `
    Error.prepareStackTrace = (error, sites) => ${result}
    ${deep('const { stack } = new Error("x"); console.log(typeof stack, Array.isArray(stack) ? stack.map(String) : stack)')}`, none))
}

test('a formatter that returns text gets hops behind its text', (t) => same(t, `
  Error.prepareStackTrace = (error, sites) => error.message + ' <' + sites.map((site) => site.getFunctionName() + ':' + site.getLineNumber()).join() + '>'
  ${deep('console.log(new Error("x").stack)')}`, some))

test('a formatter keeps its receiver, its arguments and its number of calls', (t) => same(t, `
  let calls = 0
  Error.prepareStackTrace = function (...args) { calls++; return [this === Error, args.length, args[0] === error] }
  let error
  ${deep('error = new Error("x"); console.log(error.stack, error.stack === error.stack, calls); setTimeout(() => console.log(calls), 1)')}`, none))

test('a formatter that throws', (t) => same(t, `
  Error.prepareStackTrace = () => { throw new TypeError('formatter') }
  ${deep('try { console.log("got", new Error("x").stack) } catch (error) { console.log("thrown", error instanceof TypeError, error.message) }')}`, none))

test('a formatter that throws sometimes leaves later stacks long', (t) => same(t, `
  let fail = true
  Error.prepareStackTrace = (error, sites) => { if (fail) throw new TypeError('formatter'); return 'text ' + error.message }
  ${deep('try { new Error("x").stack } catch (error) { console.log(error.message) }; fail = false; console.log(new Error("y").stack)')}`, some))

test('a formatter that reads other stacks', (t) => same(t, `
  const other = new Error('other')
  Error.prepareStackTrace = (error, sites) => error.message + typeof new Error('inner').stack + typeof other.stack
  ${deep('console.log(new Error("x").stack)')}`, some))

test('a formatter that calls the previous one prints hops once', async (t) => {
  const { hops } = await same(t, `
    const before = Error.prepareStackTrace
    const native = (error, sites) => [String(error), ...sites.map((site) => '    at ' + site)].join('\\n')
    Error.prepareStackTrace = (error, sites) => '<' + (before || native)(error, sites) + '>'
    ${deep('console.log(new Error("x").stack)')}`)
  t.is(hops, 2)
})

test('a formatter may be set, kept across ticks, and restored', (t) => same(t, `
  const before = Error.prepareStackTrace
  Error.prepareStackTrace = (_, sites) => sites
  setTimeout(async () => {
    console.log(Array.isArray(new Error('x').stack))
    await new Promise((resolve) => setTimeout(resolve, 5))
    console.log(Array.isArray(new Error('x').stack))
    Error.prepareStackTrace = before
    console.log(new Error('y').stack)
    setTimeout(() => console.log(new Error('z').stack), 1)
  }, 1)`, some))

test('a formatter deleted', (t) => same(t, `
  delete Error.prepareStackTrace
  console.log(new Error('x').stack)
  ${deep("console.log(new Error('y').stack)")}`, some))

for (const value of ['undefined', 'null', '17', '"text"', '{}']) {
  test(`a formatter set to ${value}`, (t) => same(t, `
    Error.prepareStackTrace = ${value}
    console.log(new Error('x').stack)
    ${deep("console.log(new Error('y').stack)")}`))
}

test('a formatter that is an accessor is called by Node alone', (t) => same(t, `
  let value, reads = 0, writes = 0
  Object.defineProperty(Error, 'prepareStackTrace', { get () { reads++; return value }, set (to) { writes++; value = to }, configurable: true })
  ${deep("console.log(new Error('y').stack.split('\\n')[0], writes)")}`, none))

test('a formatter that cannot be written', (t) => same(t, `
  Object.defineProperty(Error, 'prepareStackTrace', { value: (error, sites) => 'fixed ' + error.message + sites.length, writable: false, configurable: false })
  ${deep("console.log(new Error('y').stack)")}`, none))

const modules = (/** @type {string} */ name) => JSON.stringify(path.join(root, 'node_modules', name))

test('callsites gets raw call sites', (t) => same(t, `
  const callsites = require(${modules('callsites')})
  const look = () => callsites().map((site) => [site.getFileName(), site.getLineNumber(), site.getColumnNumber(), site.getFunctionName(), typeof site.getThis()].join())
  console.log(look())
  ${deep("console.log(look()); const { stack } = new Error('x'); console.log(stack, typeof callsites()[0].getFileName)")}`, some))

test('depd names the caller', (t) => same(t, `
  const deprecate = require(${modules('depd')})('app')
  process.on('deprecation', (warning) => console.log(warning.message, warning.stack.split('\\n').slice(0, 2)))
  const old = deprecate.function(() => {}, 'old is deprecated')
  old()
  ${deep("old(); console.log(new Error('x').stack)")}`, some))

test('swap, index, restore', (t) => same(t, `
  function caller () {
    const old = Error.prepareStackTrace
    Error.prepareStackTrace = (_, sites) => sites
    const { stack } = new Error()
    Error.prepareStackTrace = old
    return stack.map((site) => site.getFunctionName() + ' ' + site.getLineNumber() + ' ' + site.isToplevel() + ' ' + site.isNative())
  }
  ${deep("console.log(caller()); console.log(new Error('x').stack); setTimeout(() => console.log(caller(), new Error('y').stack), 1)")}`, some))
