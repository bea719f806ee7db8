#include "jit/compile/testing/cubin.h"

#include <elf.h>

#include <cstring>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

constexpr unsigned char kSized = 0x04;          // EIFMT_SVAL: a length, then that many bytes
constexpr unsigned char kFrameSize = 0x11;      // EIATTR_FRAME_SIZE: symbol, bytes
constexpr unsigned char kRegisterCount = 0x2f;  // EIATTR_REGCOUNT: symbol, registers

absl::Status Bad(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("cubin: ", what));
}

/// An ELF file in memory; every access is checked.
class Elf {
 public:
  static absl::StatusOr<Elf> Open(absl::string_view bytes) {
    Elf elf(bytes);
    if (!elf.Read(0, elf.header_) || std::memcmp(elf.header_.e_ident, ELFMAG, SELFMAG) != 0)
      return Bad("want an ELF file");
    for (int i = 0; i < elf.header_.e_shnum; ++i) {
      Elf64_Shdr section;
      if (!elf.Read(elf.header_.e_shoff + uint64_t{elf.header_.e_shentsize} * i, section))
        return Bad("want all of its sections, have fewer bytes");
      elf.sections_.push_back(section);
    }
    if (elf.header_.e_shstrndx >= elf.sections_.size()) return Bad("want names of sections");
    return elf;
  }

  const std::vector<Elf64_Shdr>& sections() const { return sections_; }
  std::string NameOf(const Elf64_Shdr& section) const {
    return Text(sections_[header_.e_shstrndx], section.sh_name);
  }
  /// "" if there is none.
  std::string Text(const Elf64_Shdr& table, uint32_t offset) const {
    if (table.sh_offset > bytes_.size() || offset >= bytes_.size() - table.sh_offset) return "";
    const absl::string_view rest = bytes_.substr(table.sh_offset + offset);
    return std::string(rest.substr(0, rest.find('\0')));
  }
  template <class T>
  bool Read(uint64_t at, T& value) const {
    if (at > bytes_.size() || bytes_.size() - at < sizeof value) return false;
    std::memcpy(&value, bytes_.data() + at, sizeof value);
    return true;
  }

 private:
  explicit Elf(absl::string_view bytes) : bytes_(bytes) {}

  absl::string_view bytes_;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Shdr> sections_;
};

std::vector<std::string> SymbolsOf(const Elf& elf) {
  std::vector<std::string> symbols;
  for (const Elf64_Shdr& section : elf.sections()) {
    if (section.sh_type != SHT_SYMTAB || section.sh_link >= elf.sections().size()) continue;
    for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= section.sh_size; at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      if (!elf.Read(section.sh_offset + at, symbol)) return symbols;
      symbols.push_back(elf.Text(elf.sections()[section.sh_link], symbol.st_name));
    }
  }
  return symbols;
}

/// The values in .nv.info, by symbol and attribute.
using Attributes = std::map<std::pair<std::string, unsigned char>, uint32_t>;
Attributes AttributesIn(const Elf& elf, const Elf64_Shdr& section,
                        const std::vector<std::string>& symbols) {
  Attributes attributes;
  const uint64_t end = section.sh_offset + section.sh_size;
  for (uint64_t at = section.sh_offset; at < end;) {
    unsigned char kind[2];
    uint16_t size = 0;
    if (!elf.Read(at, kind) || !elf.Read(at + 2, size)) break;
    uint32_t words[2];
    if (kind[0] == kSized && size == sizeof words && elf.Read(at + 4, words) &&
        words[0] < symbols.size()) {
      attributes[{symbols[words[0]], kind[1]}] = words[1];
    }
    at += 4 + (kind[0] == kSized ? size : 0);
  }
  return attributes;
}

}  // namespace

absl::StatusOr<std::vector<KernelResources>> ResourcesOf(absl::string_view cubin) {
  ASSIGN_OR_RETURN(const Elf elf, Elf::Open(cubin));
  const std::vector<std::string> symbols = SymbolsOf(elf);
  std::map<std::string, KernelResources> kernels;
  std::map<std::string, uint32_t> shared;
  Attributes attributes;
  for (const Elf64_Shdr& section : elf.sections()) {
    const std::string name = elf.NameOf(section);
    absl::string_view kernel = name;
    if (absl::ConsumePrefix(&kernel, ".text."))
      kernels[std::string(kernel)].kernel = std::string(kernel);
    if (absl::ConsumePrefix(&kernel, ".nv.shared."))
      shared[std::string(kernel)] = static_cast<uint32_t>(section.sh_size);
    if (name == ".nv.info") attributes = AttributesIn(elf, section, symbols);
  }
  std::vector<KernelResources> resources;
  for (auto& [name, kernel] : kernels) {
    const auto registers = attributes.find({name, kRegisterCount}),
               stack = attributes.find({name, kFrameSize});
    if (registers == attributes.end() || stack == attributes.end())
      return Bad(absl::StrCat("want the registers and the stack of ", name));
    kernel.registers = registers->second;
    kernel.stack_bytes = stack->second;
    if (const auto bytes = shared.find(name); bytes != shared.end())
      kernel.shared_bytes = bytes->second;
    resources.push_back(std::move(kernel));
  }
  return resources;
}

}  // namespace coconet
