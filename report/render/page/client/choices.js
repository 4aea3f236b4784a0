'use strict'

// Controls with which a reader chooses between a few options.

const { h } = require('./dom')

/**
 * Makes radio buttons.
 * @param {string} title
 * @param {string} name
 * @param {Array<[value: string, text: string]>} options
 * @param {string} selected
 * @param {(value: string) => void} select
 */
function radioButtons (title, name, options, selected, select) {
  /** @param {string} value */
  const input = (value) => h('input', {
    type: 'radio', name, value, checked: value === selected, on: { change: () => select(value) }
  })
  return h('fieldset', { class: 'choice' }, h('legend', {}, title), options.map(([value, text]) =>
    h('label', {}, input(value), h('span', {}, text))))
}

/**
 * Makes a list to select from.
 * @param {string} title
 * @param {Array<[value: string, text: string]>} options
 * @param {(value: string) => void} select
 */
function selectList (title, options, select) {
  const change = (/** @type {any} */ event) => select(event.target.value)
  const items = options.map(([value, text]) => h('option', { value }, text))
  return h('label', { class: 'choice' }, `${title} `, h('select', { on: { change } }, items))
}

module.exports = { radioButtons, selectList }
