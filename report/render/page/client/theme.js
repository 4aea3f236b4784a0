'use strict'

// Chooses light or dark colours, or the system's. The choice is not stored: all pages opened from files share
// one storage.

/* global document */

const { h } = require('./dom')

const THEMES = ['auto', 'light', 'dark']

function themes () {
  /** @param {string} name */
  const choose = (name) => { document.documentElement.dataset.theme = name }
  /** @param {string} value */
  const input = (value) => h('input', {
    type: 'radio', name: 'theme', value, checked: value === 'auto', on: { change: () => choose(value) }
  })
  return h('fieldset', { class: 'theme' }, h('legend', { class: 'hidden' }, 'Colours'), THEMES.map((name) =>
    h('label', {}, input(name), h('span', {}, name[0].toUpperCase() + name.slice(1)))))
}

module.exports = { themes }
