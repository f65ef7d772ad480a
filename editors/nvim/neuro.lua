-- Settings for Neovim: `neuroc lsp` for .neuro files, and colours without it.
-- Put this file into ~/.config/nvim/plugin/, or `:source` it. From Neovim 0.7 on.

local group = vim.api.nvim_create_augroup("neuro", { clear = true })

vim.api.nvim_create_autocmd({ "BufRead", "BufNewFile" }, {
  group = group,
  pattern = "*.neuro",
  callback = function()
    vim.bo.filetype = "neuro"
  end,
})

vim.api.nvim_create_autocmd("FileType", {
  group = group,
  pattern = "neuro",
  callback = function(event)
    vim.bo[event.buf].commentstring = "// %s"
    vim.bo[event.buf].shiftwidth = 4
    vim.bo[event.buf].expandtab = true
    vim.bo[event.buf].omnifunc = "v:lua.vim.lsp.omnifunc"
    vim.cmd([[
      syntax clear
      syntax keyword neuroItem use const function channel cell junction synapse network run train fit
      syntax keyword neuroMember param let state reads gate current insert pool compartment couple morphology section
      syntax keyword neuroMember compartments region spike refractory input population init clamp on event pre post modulator modulating sum
      syntax keyword neuroMember drive probe toward connect record sweep learn keep free target spikes instantaneous q10 fraction kinetics conserve
      syntax keyword neuroWord and or not if then else at every around in within holds nothing steps samples log random of from to via crosses when as true false
      syntax match neuroNumber "\v<\d+(\.\d+)?([eE][+-]?\d+)?"
      syntax region neuroString start=+"+ end=+"+ oneline
      syntax match neuroComment "//.*$"
      syntax region neuroComment start="/\*" end="\*/"
      highlight default link neuroItem Structure
      highlight default link neuroMember Keyword
      highlight default link neuroWord Conditional
      highlight default link neuroNumber Number
      highlight default link neuroString String
      highlight default link neuroComment Comment
    ]])
    local client = {
      name = "neuroc",
      cmd = { "neuroc", "lsp" },
      root_dir = vim.fn.fnamemodify(event.file, ":p:h"),
      capabilities = vim.lsp.protocol.make_client_capabilities(),
    }
    if vim.lsp.start then
      vim.lsp.start(client)
    else
      -- Neovim 0.7: one server for all buffers.
      vim.g.neuroc_client = vim.g.neuroc_client or vim.lsp.start_client(client)
      vim.lsp.buf_attach_client(event.buf, vim.g.neuroc_client)
    end
    -- Keys that newer versions have by themselves.
    local function map(keys, action)
      vim.keymap.set("n", keys, action, { buffer = event.buf })
    end
    map("K", vim.lsp.buf.hover)
    map("gd", vim.lsp.buf.definition)
    map("grr", vim.lsp.buf.references)
    map("grn", vim.lsp.buf.rename)
    map("gra", vim.lsp.buf.code_action)
  end,
})
