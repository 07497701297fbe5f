// vector_add A.txt B.txt C.txt: writes the sums of two vectors. Begin here.
#include <cstdio>

int main(int count, char** words) {
  if (count != 4) {
    std::fprintf(stderr, "usage: %s A.txt B.txt C.txt\n", words[0]);
    return 1;
  }
}
