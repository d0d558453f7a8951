-- knotwork in Neovim 0.11 and later: put this into init.lua. `knotwork lsp` must be on the path: pip install 'knotwork[editor]'
vim.filetype.add({ extension = { lwt = "lwt", gasl = "gasl" }, pattern = { [".*%.seed%.json"] = "json.seed" } })

vim.lsp.config("knotwork", {
  cmd = { "knotwork", "lsp" },
  filetypes = { "lwt", "gasl", "json.seed" },
  root_markers = { ".git" },
  -- Data to check texts against, with paths relative to the root. Omit unused settings.
  init_options = { graph = "nx:les_miserables" },
})
vim.lsp.enable("knotwork")
